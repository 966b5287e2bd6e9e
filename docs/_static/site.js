// Gives each cell of a table the name of its column, which site.css shows on phones.
addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.docutils")) {
    const names = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, i) => i && names[i] && (cell.dataset.column = names[i]));
    }
  }
});
