export * from "./cassette.ts";
export * from "./manual-clock.ts";
export * from "./scripted.ts";
