// Statements that were run, the last ones first, as the gateway shows them: without secrets.

const KEY = "tidemill.history";
const KEPT = 200;
const LONGEST = 10_000;

export function history() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
}

export function remember(statement) {
  if (statement.length > LONGEST) return;
  const kept = [statement, ...history().filter((text) => text !== statement)].slice(0, KEPT);
  try {
    localStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    localStorage.removeItem(KEY); // no room: better no history than no console
  }
}

export const forgetHistory = () => localStorage.removeItem(KEY);
