/** Remembers what was made of a thing, since many runs use the same history and tools. */
export function once<In extends object, Out>(make: (from: In) => Out): (from: In) => Out {
  const made = new WeakMap<In, Out>();
  return (from) => {
    const known = made.get(from) ?? make(from);
    made.set(from, known);
    return known;
  };
}
