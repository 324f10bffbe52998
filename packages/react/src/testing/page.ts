import { afterAll, beforeAll } from "vitest";

// As much of a document as React writes to. A whole one is twenty megabytes of packages.

type Listener = (event: unknown) => void;

class PageNode {
  readonly nodeType: number;
  readonly nodeName: string;
  readonly ownerDocument: PageDocument | null;
  parentNode: PageNode | null = null;
  nodeValue: string | null = null;
  childNodes: PageNode[] = [];
  readonly #listeners = new Map<string, Set<Listener>>();

  constructor(nodeType: number, nodeName: string, ownerDocument: PageDocument | null) {
    this.nodeType = nodeType;
    this.nodeName = nodeName;
    this.ownerDocument = ownerDocument;
  }

  get firstChild(): PageNode | null {
    return this.childNodes[0] ?? null;
  }

  get lastChild(): PageNode | null {
    return this.childNodes.at(-1) ?? null;
  }

  get nextSibling(): PageNode | null {
    const siblings = this.parentNode?.childNodes ?? [];
    return siblings[siblings.indexOf(this) + 1] ?? null;
  }

  get textContent(): string {
    return this.nodeValue ?? this.childNodes.map((child) => child.textContent).join("");
  }

  set textContent(text: string) {
    if (this.nodeType === TEXT) this.nodeValue = text;
    else this.childNodes = text === "" ? [] : [new PageText(text, this.ownerDocument, this)];
  }

  appendChild(child: PageNode): PageNode {
    return this.insertBefore(child, null);
  }

  insertBefore(child: PageNode, before: PageNode | null): PageNode {
    child.parentNode?.removeChild(child);
    const at = before ? this.childNodes.indexOf(before) : this.childNodes.length;
    if (at < 0) throw new Error("That is no child of this node.");
    this.childNodes.splice(at, 0, child);
    child.parentNode = this;
    return child;
  }

  removeChild(child: PageNode): PageNode {
    const at = this.childNodes.indexOf(child);
    if (at < 0) throw new Error("That is no child of this node.");
    this.childNodes.splice(at, 1);
    child.parentNode = null;
    return child;
  }

  contains(other: PageNode | null): boolean {
    return other !== null && (other === this || this.contains(other.parentNode));
  }

  addEventListener(type: string, listener: Listener): void {
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners.add(listener));
  }

  removeEventListener(type: string, listener: Listener): void {
    this.#listeners.get(type)?.delete(listener);
  }
}

const ELEMENT = 1;
const TEXT = 3;
const DOCUMENT = 9;

class PageText extends PageNode {
  constructor(text: string, document: PageDocument | null, parent: PageNode | null = null) {
    super(TEXT, "#text", document);
    this.nodeValue = text;
    this.parentNode = parent;
  }

  get data(): string | null {
    return this.nodeValue;
  }
}

class PageElement extends PageNode {
  readonly tagName: string;
  readonly namespaceURI = "http://www.w3.org/1999/xhtml";
  readonly style: Record<string, string> = {};
  readonly #attributes = new Map<string, string>();

  constructor(name: string, document: PageDocument) {
    super(ELEMENT, name.toUpperCase(), document);
    this.tagName = this.nodeName;
  }

  setAttribute(name: string, value: unknown): void {
    this.#attributes.set(name, String(value));
  }

  getAttribute(name: string): string | null {
    return this.#attributes.get(name) ?? null;
  }

  removeAttribute(name: string): void {
    this.#attributes.delete(name);
  }
}

class PageDocument extends PageNode {
  readonly body: PageElement;
  readonly defaultView: object;

  constructor(view: object) {
    super(DOCUMENT, "#document", null);
    this.defaultView = view;
    this.body = new PageElement("body", this);
  }

  get activeElement(): PageElement {
    return this.body;
  }

  get documentElement(): PageElement {
    return this.body;
  }

  createElement(name: string): PageElement {
    return new PageElement(name, this);
  }

  createTextNode(text: string): PageText {
    return new PageText(text, this);
  }
}

/** Slices of work that React may have left. */
const LAST_WORK = 50;

/** A document for the tests of a file, as `window` and `document`. It is there while they run. */
export function usePage(): void {
  const names = ["window", "document", "IS_REACT_ACT_ENVIRONMENT"];
  beforeAll(() => {
    // React asks whether the active element is a frame: none is.
    const page = { event: undefined, HTMLIFrameElement: Map, addEventListener: () => {} };
    const document = new PageDocument(page);
    Object.assign(globalThis, {
      window: Object.assign(page, { document }),
      document,
      IS_REACT_ACT_ENVIRONMENT: true,
    });
  });
  afterAll(async () => {
    // React does the last of its work after a page is gone.
    for (let left = LAST_WORK; left > 0; left--) {
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    for (const name of names) Reflect.deleteProperty(globalThis, name);
  });
}

/** An element to render into. */
export function createContainer(): Element {
  return document.createElement("div");
}
