/** Responses are those of Anthropic. */
export { Reader } from "../anthropic-messages/reader.ts";
