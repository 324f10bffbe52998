/** What is used of it. It is optional: types must not depend on whether it is installed. */
declare module "libsql" {
  export default class Database {
    constructor(path: string, options?: { timeout?: number });
    exec(sql: string): unknown;
    prepare(sql: string): {
      run(...values: unknown[]): { changes: number | bigint };
      all(...values: unknown[]): unknown[];
    };
    close(): unknown;
  }
}
