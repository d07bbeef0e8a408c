// Dark or light: as the system says, until its user chooses.

const KEY = "tidemill.theme";

export function applyTheme() {
  const chosen = localStorage.getItem(KEY);
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
}

export function turnTheme() {
  localStorage.setItem(KEY, isDark() ? "light" : "dark");
  applyTheme();
  document.dispatchEvent(new Event("theme"));
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
