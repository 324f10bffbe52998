import { folded, type Protection } from "./protected.ts";

/**
 * Whether tools may neither see nor change a place. `places` are the names that lead to each from
 * the workspace. Names are compared as `protection` does.
 */
export function hiding(places: readonly (readonly string[])[]): Protection {
  const hidden = places.map((names) => names.map(folded));
  return (names) => {
    if (hidden.length === 0) return false;
    const plain = names.map(folded);
    return hidden.some((place) => place.every((name, index) => name === plain[index]));
  };
}
