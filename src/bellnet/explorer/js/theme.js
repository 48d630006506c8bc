// Light or dark: as the system has it, unless it was chosen here; known before anything is painted.
{
  const key = "bellnet-theme";
  let kept = null;
  try {
    kept = localStorage.getItem(key);
  } catch {
    // Some browsers keep nothing for files; then the system decides each time.
  }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  document.addEventListener("DOMContentLoaded", () => {
    const choice = document.getElementById("theme");
    const current = document.documentElement.dataset.theme ?? "system";
    choice.querySelector(`[value=${current}]`).checked = true;
    choice.addEventListener("change", ({ target }) => {
      if (target.value === "system") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = target.value;
      try {
        localStorage.setItem(key, target.value);
      } catch {
        // as above
      }
    });
  });
}
