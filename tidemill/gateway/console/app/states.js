// What a page shows in place of its content: that it waits, that there is nothing, what went wrong; and questions.

import { h } from "./dom.js";

export const loading = (what = "Loading") =>
  h("div", { class: "state", role: "status" }, h("span", { class: "spinner", "aria-hidden": "true" }), h("p", {}, `${what}…`));

export const empty = (title, hint, ...actions) =>
  h("div", { class: "state" }, h("h2", {}, title), hint && h("p", {}, hint), actions.length ? h("div", { class: "buttons" }, actions) : null);

export const failed = (error, again) =>
  h("div", { class: "state failed", role: "alert" },
    h("h2", {}, "That did not work"), h("p", {}, error.message),
    again && h("div", { class: "buttons" }, h("button", { class: "button", onclick: again }, "Try again")));

/** A word with a colour of its own. */
export const pill = (status) => h("span", { class: `pill ${status.toLowerCase()}` }, status.toLowerCase());

/** Resolves to whether the user agrees. */
export function asked(title, text, yes) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "dialog", "aria-label": title },
      h("h2", {}, title), h("p", {}, text),
      h("div", { class: "buttons" },
        h("button", { class: "button", onclick: () => dialog.close("") }, "Keep it"),
        h("button", { class: "button danger", autofocus: true, onclick: () => dialog.close("yes") }, yes)));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** A line at the foot of the page that goes by itself. */
export function tell(text, kind = "") {
  const line = h("div", { class: `toast ${kind}`, role: "status" }, text);
  document.body.append(line);
  setTimeout(() => line.remove(), 5_000);
}
