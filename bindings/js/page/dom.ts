// Elements and small helpers for them.

type Attributes = Record<string, string | number>;

export function byId<T extends Element = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element #${id}`);
  return found as Element as T;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  name: K, attributes: Attributes = {}, ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  return filled(document.createElement(name), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(
  name: K, attributes: Attributes = {}, ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled<T extends Element>(element: T, attributes: Attributes, children: (Node | string)[]): T {
  set(element, attributes);
  element.append(...children);
  return element;
}

export function set(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}

/** Changes text only if it differs, because screen readers may announce even an equal text again. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Shows an error beside its input, or removes it. */
export function complain(input: Element, error: Element, text = ""): void {
  say(error, text);
  if (text) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The checked one of the radio buttons called `name`. */
export function chosen(name: string): string {
  return document.querySelector<HTMLInputElement>(`input[name="${name}"]:checked`)?.value ?? "";
}

export function choose(name: string, value: string): void {
  for (const radio of document.querySelectorAll<HTMLInputElement>(`input[name="${name}"]`)) {
    radio.checked = radio.value === value;
  }
}

export function onChoice(name: string, listener: () => void): void {
  for (const radio of document.querySelectorAll(`input[name="${name}"]`)) radio.addEventListener("change", listener);
}

/** Calls `action` once, `delay` ms after the last of many calls. */
export function after(delay: number, action: () => void): () => void {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, delay);
  };
}

/** Calls `action` at most once per frame. */
export function perFrame(action: () => void): () => void {
  let waits = false;
  return () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      action();
    });
  };
}

/** Calls `draw` with the width of `element`'s parent, now and whenever it changes. */
export function onWidth(element: Element, draw: (width: number) => void): void {
  const parent = element.parentElement ?? element;
  const width = () => Math.floor(parent.clientWidth);
  let drawn = width();
  draw(drawn);
  new ResizeObserver(() => {
    if (width() === drawn) return;
    drawn = width();
    draw(drawn);
  }).observe(parent);
}
