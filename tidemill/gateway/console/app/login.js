// Who asks: a name and a password, or a token. Neither is kept: the gateway gives a pass for them.

import { enter } from "./api.js";
import { fill, h } from "./dom.js";

/** Shows the form in `root`; calls `entered` when the gateway has let its user in. */
export function showLogin(root, entered) {
  const name = h("input", { id: "name", autocomplete: "username", spellcheck: "false", autocapitalize: "off" });
  const word = h("input", { id: "password", type: "password", autocomplete: "current-password", required: true });
  const problem = h("p", { class: "problem", role: "alert" });
  const submit = h("button", { class: "button primary", type: "submit" }, "Sign in");
  const form = h("form", { class: "login" },
    h("img", { src: "logo.svg", alt: "", width: 40, height: 40 }),
    h("h1", {}, "Tidemill"),
    h("p", { class: "muted" }, "This gateway asks who you are."),
    h("label", { for: "name" }, "Name", h("span", { class: "muted" }, " (none with a token)")), name,
    h("label", { for: "password" }, "Password or token"), word,
    problem, submit);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      await enter(authorization(name.value, word.value));
      word.value = "";
      entered();
    } catch (error) {
      problem.textContent = error.message;
      word.select();
    } finally {
      submit.disabled = false;
    }
  });
  fill(root, form);
  name.focus();
}

function authorization(name, word) {
  if (!name) return `Bearer ${word}`;
  const bytes = new TextEncoder().encode(`${name}:${word}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}
