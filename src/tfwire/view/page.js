"use strict";
// Film strips: the slider shows one frame.
for (const film of document.querySelectorAll(".film")) {
  const frames = film.querySelectorAll(".f");
  const slider = film.querySelector("input");
  slider.addEventListener("input", () => {
    frames.forEach((frame, i) => { frame.hidden = i !== slider.valueAsNumber; });
    film.querySelector("output").textContent = `${slider.valueAsNumber + 1} of ${frames.length}`;
  });
}
// Keys: arrows or j and k move over the rows, Enter opens one, n and p turn pages, / searches.
const rows = [...document.querySelectorAll(".records tbody tr")];
let at = -1;
function move(step) {
  if (!rows.length) return;
  rows[at]?.classList.remove("on");
  at = Math.max(0, Math.min(rows.length - 1, at + step));
  rows[at].classList.add("on");
  rows[at].scrollIntoView({ block: "nearest" });
}
const keys = {
  ArrowDown: () => move(1), j: () => move(1), ArrowUp: () => move(-1), k: () => move(-1),
  Enter: () => rows[at]?.querySelector("a")?.click(),
  n: () => document.querySelector("a[rel=next]")?.click(),
  p: () => document.querySelector("a[rel=prev]")?.click(),
  Escape: () => document.querySelector("a[rel=up]")?.click(),
  "/": () => document.querySelector("input[type=search]")?.focus(),
};
document.addEventListener("keydown", (event) => {
  const inField = event.target.closest("input, select, button, audio, a");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (inField && !(event.target.matches("a") && event.key !== "Enter")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const action = keys[event.key];
  if (action) { event.preventDefault(); action(); }
});
// A page in one file: the search hides the rows without the text.
const search = document.querySelector("input[data-rows]");
search?.addEventListener("input", () => {
  const wanted = search.value.toLowerCase();
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
});
