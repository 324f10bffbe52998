import { Agent } from "@gyre/agent";
import { EnvHttpProxyAgent, setGlobalDispatcher } from "undici";
setGlobalDispatcher(new EnvHttpProxyAgent());
const agent = new Agent({ model: "anthropic/claude-sonnet-4-5" });
console.log((await agent.prompt("Which tea?")).text);
