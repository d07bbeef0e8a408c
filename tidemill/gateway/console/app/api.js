// The gateway, as requests. Who asks is said by a header of our own: no cookie, nothing that another site's page
// could make the browser send.

const PASS = "tidemill.pass";
const CAUSE = "Caused by: ";
let pass = sessionStorage.getItem(PASS) ?? "";

/** What the gateway answers instead of a result. `status` 0: it does not answer; `position` as `positionOf` has it. */
export class ApiError extends Error {
  constructor(status, message, position = null) {
    super(message);
    this.status = status;
    this.position = position;
  }
}

/** `{line, column}` of `"3:14"`, in the statement and from 1 on; null of anything else. */
export function positionOf(text) {
  const found = /^(\d+):(\d+)$/.exec(text ?? "");
  return found && { line: Number(found[1]), column: Number(found[2]) };
}

/** Called when the gateway wants to know who asks. */
export const onStranger = { tell: () => {} };

/** The answer's JSON. */
export async function call(method, path, body, options = {}) {
  const answer = await sent(method, path, body, options);
  return answer.json();
}

/** The answer as it comes; ApiError where it is none. */
export async function sent(method, path, body, { signal, accept, authorization, keepalive } = {}) {
  const headers = { Accept: accept ?? "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const said = authorization ?? (pass ? `Bearer ${pass}` : "");
  if (said) headers.Authorization = said;
  let answer;
  try {
    answer = await fetch(path, {
      method, headers, signal, keepalive, credentials: "omit", cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The gateway does not answer.");
  }
  if (answer.ok) return answer;
  const error = new ApiError(answer.status, await reason(answer), positionOf(answer.headers.get("Tidemill-Error-Position")));
  if (answer.status === 401 && authorization === undefined) onStranger.tell();
  throw error;
}

async function reason(answer) {
  const text = await answer.text();
  try {
    const { errors } = JSON.parse(text);
    return said(String(errors.at(-1)));
  } catch {
    return text.slice(0, 500) || `The gateway answers ${answer.status}.`;
  }
}

/** What the first cause in a chain of exceptions says, which tells most, without its class. */
export function said(text) {
  const first = text.slice(text.includes(CAUSE) ? text.indexOf(CAUSE) + CAUSE.length : 0).split(`\n${CAUSE}`)[0];
  const message = first.split("\n\nEnd of exception")[0];
  const named = /^[\w.$]+: ([\s\S]*)$/.exec(message);
  return briefly(named ? named[1] : message);
}

const TOKENS_SHOWN = 5;

/** With what may help before what a parser would have taken, of which a few words are enough. */
function briefly(message) {
  const [first, list] = message.split(/\nWas expecting(?: one of)?:\n/);
  if (list === undefined) return message;
  const lines = list.split("\n");
  const end = lines.findIndex((line) => !line.startsWith("    "));
  const words = lines.slice(0, end < 0 ? undefined : end).map((line) => line.trim().replace(/ \.\.\.$/, "").replace(/^"(.*)"$/, "$1"));
  const more = words.length > TOKENS_SHOWN + 1 ? ` or ${words.length - TOKENS_SHOWN} others` : "";
  const shown = more ? words.slice(0, TOKENS_SHOWN) : words;
  return [first, ...(end < 0 ? [] : lines.slice(end)), `Expected: ${shown.join(", ")}${more}`].join("\n");
}

/** Says who asks from now on, by a pass that the gateway gives for a name and a password, or a token. */
export async function enter(authorization) {
  const given = await (await sent("POST", "/console/api/pass", {}, { authorization })).json();
  pass = given.pass;
  sessionStorage.setItem(PASS, pass);
}

/** The gateway forgets the pass, and so does the page. */
export async function leave() {
  try {
    await sent("DELETE", "/console/api/pass");
  } finally {
    pass = "";
    sessionStorage.clear();
  }
}

export const hasPass = () => pass !== "";
