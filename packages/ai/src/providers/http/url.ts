/** `path` below `baseUrl`. A query of the base (`?api-version=…`) stays at the end. */
export function joinUrl(baseUrl: string, path: string): string {
  const mark = baseUrl.indexOf("?");
  const base = mark < 0 ? baseUrl : baseUrl.slice(0, mark);
  const query = mark < 0 ? "" : baseUrl.slice(mark);
  return `${base.replace(/\/+$/, "")}/${path.replace(/^\/+/, "")}${query}`;
}
