export { restateEngine, type RestateEngineOptions } from "./restate-engine.ts";
