// The session of this tab at the gateway: opened when it is first needed, found again after a reload, kept alive
// while the page is open.

import { ApiError, call } from "./api.js";

const KEY = "tidemill.session";
const BEAT_MILLIS = 60_000;
let opened = null;

/** The session's handle. */
export function session() {
  opened ??= found().catch((error) => {
    opened = null;
    throw error;
  });
  return opened;
}

/** The path of the session's routes. */
export const sessionPath = async () => `/v4/sessions/${await session()}`;

async function found() {
  const kept = sessionStorage.getItem(KEY);
  if (kept && (await lives(kept))) return kept;
  const { sessionHandle } = await call("POST", "/v4/sessions", { sessionName: "console", properties: {} });
  sessionStorage.setItem(KEY, sessionHandle);
  return sessionHandle;
}

async function lives(handle) {
  try {
    await call("POST", `/v4/sessions/${handle}/heartbeat`, {});
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status !== 0 && error.status !== 401) return false;
    throw error;
  }
}

/** A session that is gone is opened anew when it is next needed: true where it was. */
export async function isGone() {
  const kept = sessionStorage.getItem(KEY);
  if (!kept || (await lives(kept))) return false;
  forgetSession();
  return true;
}

export function forgetSession() {
  opened = null;
  sessionStorage.removeItem(KEY);
}

setInterval(() => {
  if (opened && document.visibilityState === "visible") isGone().catch(() => {});
}, BEAT_MILLIS);
