/** The part of a response's `Headers` that is read. */
export interface ResponseHeaders {
  get(name: string): string | null;
  forEach(take: (value: string, name: string) => void): void;
}

/** The part of a `Response` that is read. */
export interface FetchedResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly type?: string;
  readonly headers: ResponseHeaders;
  readonly body: ReadableStream<Uint8Array> | null;
}

/** The part of `fetch` that is used: the global one fits, and so does a simpler one. */
export type Fetch = (url: string, init: FetchRequest) => Promise<FetchedResponse>;

/** What a `Fetch` is given. The caller judges redirects, since the key would go with them. */
export interface FetchRequest {
  method: string;
  headers: Record<string, string>;
  /** Absent: the request has none, as of `GET`. */
  body?: string;
  signal: AbortSignal;
  redirect: "manual";
}
