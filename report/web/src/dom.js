// Elements of the page. Text is only ever set as text: nothing of a report becomes markup.

// element("p", {class: "text"}, "words", child, ...)
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") node.addEventListener("click", value);
    else if (value !== undefined && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

// Offers data: or blob: content as a file.
export function download(url, name) {
  const link = element("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}
