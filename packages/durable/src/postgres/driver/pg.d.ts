/** What is used of `pg`, which users install themselves. */
declare module "pg" {
  export interface QueryConfig {
    name?: string;
    text: string;
    values?: readonly unknown[];
  }
  export interface QueryResult {
    rows: unknown[];
    rowCount: number | null;
  }
  export interface ClientConfig {
    connectionString: string;
    application_name?: string;
    connectionTimeoutMillis?: number;
    query_timeout?: number;
    keepAlive?: boolean;
    types?: { getTypeParser(oid: number, format?: string): (text: string) => unknown };
  }
  export interface Notification {
    processId: number;
    channel: string;
    payload?: string;
  }
  export class Client {
    constructor(config: ClientConfig);
    connect(): Promise<void>;
    query(query: QueryConfig | string): Promise<QueryResult>;
    on(event: "notification", listener: (message: Notification) => void): this;
    on(event: "error", listener: (error: Error) => void): this;
    on(event: "end", listener: () => void): this;
    end(): Promise<void>;
  }
  export interface PoolClient extends Client {
    release(error?: Error | boolean): void;
  }
  export class Pool {
    constructor(
      config: ClientConfig & { max: number; idleTimeoutMillis?: number; allowExitOnIdle?: boolean },
    );
    connect(): Promise<PoolClient>;
    on(event: "error", listener: (error: Error) => void): this;
    on(event: "connect", listener: (client: PoolClient) => void): this;
    end(): Promise<void>;
  }
  export const types: { getTypeParser(oid: number, format?: string): (text: string) => unknown };
  const pg: { Client: typeof Client; Pool: typeof Pool; types: typeof types };
  export default pg;
}
