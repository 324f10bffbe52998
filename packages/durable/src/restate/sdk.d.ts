/** What is used of Restate, which users install themselves. */
declare module "@restatedev/restate-sdk" {
  import type { IncomingMessage, ServerResponse } from "node:http";

  export interface Context {
    request(): { readonly id: string };
  }
  export interface RetryPolicy {
    initialInterval: number;
    maxInterval: number;
    exponentiationFactor: number;
    maxAttempts: number;
    onMaxAttempts: "kill" | "pause";
  }
  export interface ServiceOptions {
    inactivityTimeout: number;
    abortTimeout: number;
    journalRetention: number;
    idempotencyRetention: number;
    retryPolicy: RetryPolicy;
  }
  export type Service = { readonly name: string };
  export function service(definition: {
    name: string;
    handlers: Record<string, (context: Context, input: string) => Promise<void>>;
    options: ServiceOptions;
  }): Service;
  export interface Endpoint {
    bind(service: Service): Endpoint;
    setLogger(log: () => void): Endpoint;
    http1Handler(): (request: IncomingMessage, response: ServerResponse) => void;
  }
  export function endpoint(): Endpoint;
}
