export { listenForLogin, type LoginCallback, type LoginCallbackOptions } from "./login-callback.ts";
export { addressRefusal, readHost } from "./public-address.ts";
