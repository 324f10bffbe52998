export { importPiSession, isPiHeader, type PiImport, type SkippedPart } from "./import.ts";
