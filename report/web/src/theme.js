// Light and dark: as the system has it until somebody chooses; paper is always light.
const COLOURS = {
  light: {
    back: "#ffffff",
    text: "#1c2430",
    dim: "#566072",
    line: "#d5dae2",
    idle: "#e4e7ec",
    bad: "#c0262d",
    // Okabe and Ito's palette for all kinds of colour vision, then darker ones.
    series: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7a00", "#5d5d5d",
      "#4b3f9e", "#7a4a2b", "#2f6b4f", "#9c2f5f"],
  },
  dark: {
    back: "#12161d",
    text: "#e6eaf0",
    dim: "#a2adbd",
    line: "#36404e",
    idle: "#2a323e",
    bad: "#ff7b72",
    series: ["#4aa3e0", "#f0b429", "#2fc49a", "#e29bc4", "#8fd0f5", "#ff8a4a", "#d9c84a", "#a7a7a7",
      "#9a8ff0", "#c48f6a", "#6fb592", "#e07aa8"],
  },
};

let chosen = null;
let printing = false;

const system = window.matchMedia("(prefers-color-scheme: dark)");

export function themeName() {
  if (printing) return "light";
  return chosen ?? (system.matches ? "dark" : "light");
}

export const colours = () => COLOURS[themeName()];

// Calls changed() whenever colours are to be others.
export function themeWatch(changed) {
  const apply = () => {
    document.documentElement.dataset.theme = themeName();
    changed();
  };
  system.addEventListener("change", apply);
  document.documentElement.dataset.theme = themeName();
  return {
    toggle() {
      chosen = themeName() === "dark" ? "light" : "dark";
      apply();
    },
    print(on) {
      printing = on;
      apply();
    },
  };
}
