// What the session can name: catalogs, databases, tables and views, and the columns of the one that is looked at.

import { call } from "../app/api.js";
import { fill, h } from "../app/dom.js";
import { session } from "../app/session.js";
import { empty, failed, loading } from "../app/states.js";
import { edit } from "../sql/page.js";

export function catalogsPage(root, [catalog, database, table]) {
  const tree = h("nav", { class: "tree", "aria-label": "Catalogs" }, loading());
  const place = h("div", { class: "content" });
  root.append(h("header", { class: "head" }, h("h1", {}, "Catalogs")), h("div", { class: "split" }, tree, place));
  showTree(tree, { catalog, database, table });
  showTable(place, catalog, database, table);
}

const ask = async (query) => call("GET", `/console/api/sessions/${await session()}/names?${new URLSearchParams(query)}`);
const address = (...parts) => `#/catalogs/${parts.map(encodeURIComponent).join("/")}`;
export const quoted = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : `\`${name.replaceAll("`", "``")}\``);

async function showTree(place, at) {
  try {
    const { catalogs, current, database } = await ask({});
    const open = { catalog: at.catalog ?? current, database: at.database ?? database, table: at.table };
    fill(place, h("ul", {}, await Promise.all(catalogs.map((name) => catalogBranch(name, open)))));
  } catch (error) {
    fill(place, failed(error, () => showTree(place, at)));
  }
}

const branch = (name, isOpen, inside) => {
  const held = h("ul", {});
  const details = h("details", { open: isOpen }, h("summary", {}, name), held);
  const unfold = async () => {
    if (!details.open || held.children.length) return;
    try {
      const found = await inside();
      fill(held, found.length ? found : h("li", { class: "muted" }, "nothing"));
    } catch (error) {
      fill(held, h("li", { class: "problem" }, error.message));
    }
  };
  details.addEventListener("toggle", unfold);
  unfold();
  return h("li", {}, details);
};

const catalogBranch = (name, at) => branch(name, name === at.catalog, async () => {
  const { databases } = await ask({ catalog: name });
  return databases.map((database) => branch(database, name === at.catalog && database === at.database, () => tables(name, database, at)));
});

async function tables(catalog, database, at) {
  const found = (await ask({ catalog, database })).tables;
  return found.map(({ name, view }) => {
    const current = at.table === name && at.catalog === catalog && at.database === database;
    return h("li", {}, h("a", { href: address(catalog, database, name), title: name, "aria-current": current ? "page" : null },
      name, view && h("span", { class: "muted" }, " view")));
  });
}

async function showTable(place, catalog, database, table) {
  if (!table) {
    fill(place, empty("Choose a table", "Its columns are shown here. Temporary tables are those of this page's session."));
    return;
  }
  fill(place, loading());
  const path = [catalog, database, table].map(quoted).join(".");
  try {
    const { columns } = await ask({ catalog, database, table });
    fill(place,
      h("h2", {}, table), h("p", { class: "mono muted" }, path),
      h("div", { class: "buttons" },
        h("button", { class: "button primary", onclick: () => edit(`SELECT * FROM ${path};`) }, "Query it"),
        h("button", { class: "button", onclick: () => edit(`SHOW CREATE TABLE ${path};`) }, "Its definition")),
      h("div", { class: "scroll" }, h("table", { class: "list" },
        h("thead", {}, h("tr", {}, ["Column", "Type", "Comment"].map((title) => h("th", { scope: "col" }, title)))),
        h("tbody", {}, columns.map((column) => h("tr", {},
          h("td", {}, h("b", {}, column.name), column.key && h("span", { class: "pill" }, "key")),
          h("td", {}, h("code", {}, column.type)), h("td", {}, column.comment)))))));
  } catch (error) {
    fill(place, failed(error, () => showTable(place, catalog, database, table)));
  }
}
