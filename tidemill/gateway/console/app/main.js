// The frame: navigation, theme, keys, and which page is shown. Pages are functions from the place they fill and
// the parts of the address to what ends them.

import { call, hasPass, leave, onStranger } from "./api.js";
import { fill, h, s } from "./dom.js";
import { onKeys, showKeys } from "./keys.js";
import { showLogin } from "./login.js";
import { forgetSession } from "./session.js";
import { failed } from "./states.js";
import { applyTheme, turnTheme } from "./theme.js";
import { catalogsPage } from "../catalogs/page.js";
import { jobPage } from "../jobs/job.js";
import { jobsPage } from "../jobs/list.js";
import { lineagePage } from "../jobs/lineage.js";
import { historyPage } from "../jobs/past.js";
import { sessionsPage } from "../sessions/page.js";
import { sqlPage } from "../sql/page.js";

const PAGES = [
  { name: "sql", title: "SQL", key: "s", icon: "M4 6l5 5-5 5M11 17h8", page: sqlPage },
  { name: "jobs", title: "Jobs", key: "j", icon: "M3 15l5-6 4 4 6-8M3 19h16", page: (root, parts) => (parts.length ? jobPage : jobsPage)(root, parts) },
  { name: "history", title: "History", key: "h", icon: "M4 11a7 7 0 1 0 2-5M4 4v4h4M11 7v4l3 2", page: historyPage },
  { name: "lineage", title: "Lineage", key: "l", icon: "M3 8h5v6H3zM14 3h5v6h-5zM14 13h5v6h-5zM8 11h3V6h3M11 11v5h3", page: lineagePage },
  { name: "sessions", title: "Sessions", key: "o", icon: "M4 5h14v9H4zM8 18h6M11 14v4", page: sessionsPage },
  { name: "catalogs", title: "Catalogs", key: "c", icon: "M4 6c0-3 14-3 14 0v10c0 3-14 3-14 0zM4 6c0 3 14 3 14 0M4 11c0 3 14 3 14 0", page: catalogsPage },
];
/** What the console of a run without a gateway has. */
const JOBS_ONLY = ["jobs", "history", "lineage"];
let pages = PAGES;
let main = null;
let end = null;

function start() {
  applyTheme();
  for (const { name, title, key } of PAGES) onKeys(`g ${key}`, `go to ${title}`, () => { location.hash = `#/${name}`; });
  onKeys("t", "dark or light", turnTheme);
  onKeys("?", "this list", showKeys);
  onKeys("/", "to the editor", () => {
    location.hash = "#/sql";
    setTimeout(() => document.querySelector("textarea")?.focus());
  });
  onStranger.tell = login;
  addEventListener("hashchange", show);
  enterHouse();
}

async function enterHouse() {
  try {
    const { user, version, sql } = await call("GET", "/console/api/hello");
    if (!sql) pages = PAGES.filter(({ name }) => JOBS_ONLY.includes(name));
    fill(document.body, ...frame(user, version));
    show();
  } catch (error) {
    if (error.status !== 401) fill(document.body, h("main", {}, failed(error, enterHouse)));
  }
}

function login() {
  end?.();
  end = null;
  main = null;
  showLogin(document.body, enterHouse);
}

function frame(user, version) {
  main = h("main", { id: "main", tabindex: "-1" });
  const out = hasPass() && h("button", { class: "quiet", onclick: signOut, title: "Sign out" }, `${user} · sign out`);
  return [
    h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); main.focus(); } }, "Skip to the page"),
    h("nav", { class: "rail", "aria-label": "Pages" },
      h("a", { class: "mark", href: `#/${pages[0].name}`, title: `Tidemill ${version}` },
        h("img", { src: "logo.svg", alt: "", width: 26, height: 26 }), h("span", {}, "Tidemill")),
      pages.map(link),
      h("div", { class: "foot" }, out,
        h("button", { class: "quiet", onclick: turnTheme, title: "Dark or light (t)" }, "Dark / light"),
        h("button", { class: "quiet", onclick: showKeys, title: "Keys (?)" }, "Keys ", h("kbd", {}, "?")))),
    main,
  ];
}

const link = ({ name, title, key, icon }) =>
  h("a", { class: "place", href: `#/${name}`, "data-page": name, title: `${title} (g ${key})` },
    s("svg", { viewBox: "0 0 22 22", "aria-hidden": "true" }, s("path", { d: icon })), h("span", {}, title));

async function signOut() {
  await leave().catch(() => {});
  forgetSession();
  location.reload();
}

function show() {
  if (!main) return;
  const [name, ...parts] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const found = pages.find((page) => page.name === name) ?? pages[0];
  end?.();
  main.replaceChildren();
  main.className = `page ${found.name}`;
  document.title = `${found.title} · Tidemill`;
  for (const element of document.querySelectorAll("[data-page]")) {
    if (element.dataset.page === found.name) element.setAttribute("aria-current", "page");
    else element.removeAttribute("aria-current");
  }
  end = found.page(main, parts.filter(Boolean)) ?? null;
}

start();
