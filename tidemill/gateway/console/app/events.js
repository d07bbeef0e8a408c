// Server-sent events over fetch, which can say who asks; the browser's own EventSource cannot.

import { sent } from "./api.js";

/**
 * Events `{name, id, data}` as they come, until the answer ends or `signal` says so; one named `at` has no data,
 * and says from which token to go on.
 */
export async function* events(path, signal) {
  const answer = await sent("GET", path, undefined, { signal, accept: "text/event-stream" });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (held + value).split("\n\n");
      held = parts.pop();
      for (const part of parts) {
        const event = parsed(part);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parsed(text) {
  const event = { name: "message", id: "", data: "" };
  for (const line of text.split("\n")) {
    if (line.startsWith("event: ")) event.name = line.slice(7);
    else if (line.startsWith("id: ")) event.id = line.slice(4);
    else if (line.startsWith("data: ")) event.data += line.slice(6);
  }
  if (event.data) return event;
  return event.id ? { ...event, name: "at" } : null;
}
