// A page that is kept up to date: asks again and again while it is looked at.

/** Calls `look` now and every `millis`, not while the tab is hidden; returns what ends it. */
export function watched(look, millis) {
  let ended = false;
  let timer = 0;
  const turn = async () => {
    if (document.visibilityState === "visible") await look();
    if (!ended) timer = setTimeout(turn, millis);
  };
  const seen = () => {
    if (document.visibilityState === "visible") look();
  };
  document.addEventListener("visibilitychange", seen);
  turn();
  return () => {
    ended = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}
