import { createChatRoute } from "@gyre/server/streams";
import { createAgent } from "../../../../lib/agent";
import { store } from "../../../../lib/store";

// `GET …/ID/stream` goes on with an answer, `POST …/ID/stop` stops it.
export const POST = createChatRoute(() => createAgent(), { store, resumable: true });
export const GET = POST;
