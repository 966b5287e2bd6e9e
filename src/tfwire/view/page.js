"use strict";
// A page in one file has each picture once: rows show those of the records below.
for (const copy of document.querySelectorAll("[data-copy]")) {
  copy.src = document.getElementById(copy.dataset.copy).src;
}
// Film strips: the slider shows one frame.
for (const film of document.querySelectorAll(".film")) {
  const frames = film.querySelectorAll(".f");
  const slider = film.querySelector("input");
  slider.addEventListener("input", () => {
    frames.forEach((frame, i) => { frame.hidden = i !== slider.valueAsNumber; });
    film.querySelector("output").textContent = `${slider.valueAsNumber + 1} of ${frames.length}`;
  });
}
// Keys: arrows or j and k move over the rows, Enter opens one, n and p turn pages, / searches. A key
// that finds nothing to do is left to the browser: arrows scroll a page without rows.
const rows = [...document.querySelectorAll(".records tbody tr")];
let at = -1;
function move(step) {
  const shown = rows.filter((row) => !row.hidden);
  if (!shown.length) return false;
  const next = shown.indexOf(rows[at]) + step;
  rows[at]?.classList.remove("on");
  at = rows.indexOf(shown[Math.max(0, Math.min(shown.length - 1, next))]);
  rows[at].classList.add("on");
  rows[at].scrollIntoView({ block: "nearest" });
  return true;
}
function act(element, method) {
  element?.[method]();
  return Boolean(element);
}
function find(selector) { return document.querySelector(selector); }
const keys = {
  ArrowDown: () => move(1), j: () => move(1), ArrowUp: () => move(-1), k: () => move(-1),
  Enter: () => act(rows[at]?.querySelector("a"), "click"),
  n: () => act(find("a[rel=next]"), "click"),
  p: () => act(find("a[rel=prev]"), "click"),
  Escape: () => act(find("a[rel=up]"), "click"),
  "/": () => act(find("input[type=search]"), "focus"),
};
document.addEventListener("keydown", (event) => {
  const inField = event.target.closest("input, select, button, audio, a");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (inField && !(event.target.matches("a") && event.key !== "Enter")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (Object.hasOwn(keys, event.key) && keys[event.key]()) event.preventDefault();
});
// A page in one file: the search hides the rows without the text.
const search = document.querySelector("input[data-rows]");
search?.addEventListener("input", () => {
  const wanted = search.value.toLowerCase();
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
});
