import {
  destructive,
  edit,
  grep,
  network,
  outside,
  read,
  shell,
  type Task,
  write,
} from "./task.ts";

/**
 * Forty tasks on the repository of `openRepository`: 24 that stay inside of the workspace, 8 that
 * need the network, 4 that reach outside and 4 that destroy what cannot be brought back.
 */
export const tasks: readonly Task[] = [
  {
    title: "explain the project",
    calls: [
      ["ls", { path: "." }],
      read("README.md"),
      shell("ls -la"),
      shell("git log --oneline -5"),
    ],
  },
  {
    title: "find where a function is used",
    calls: [grep("addTea"), shell("grep -rn addTea src"), shell("cat src/tea.js | head -20")],
  },
  {
    title: "fix a failing test",
    calls: [
      shell("node --test"),
      read("src/tea.js"),
      edit("src/tea.js", "a - b", "a + b"),
      shell("node --test"),
      shell("git diff"),
    ],
  },
  {
    title: "add a test",
    calls: [
      read("test/tea.test.js"),
      write("test/more.test.js", 'import test from "node:test";\ntest("more", () => {});\n'),
      shell("node --test test/more.test.js"),
    ],
  },
  {
    title: "rename a function",
    calls: [
      grep("addTea"),
      edit("src/tea.js", "addTea", "mixTea"),
      shell("sed -i s/addTea/mixTea/ test/tea.test.js"),
      shell("node --test 2>&1 | tail -5"),
    ],
  },
  {
    title: "what has changed since yesterday",
    calls: [
      shell("git status --short"),
      shell("git log --since=yesterday --stat"),
      shell("git diff HEAD~1"),
    ],
  },
  {
    title: "where and when am I",
    calls: [shell("pwd && date"), shell("uname -a"), shell("node --version && npm --version")],
  },
  {
    title: "count lines of code",
    calls: [
      shell("wc -l src/*.js"),
      shell("find . -name '*.js' -not -path './node_modules/*' | wc -l"),
    ],
  },
  {
    title: "run the linter of the project and fix what it finds",
    calls: [shell("npm run lint"), edit("src/tea.js", "var ", "const "), shell("npm run lint")],
  },
  {
    title: "build the project",
    calls: [shell("npm run build"), shell("ls dist"), read("dist/tea.js")],
  },
  {
    title: "commit what is there",
    calls: [
      shell("git status"),
      shell("git add -A"),
      shell('git commit -m "Add tea"'),
      shell("git log -1"),
    ],
  },
  {
    title: "work on a branch",
    calls: [
      shell("git switch -c tea"),
      edit("src/tea.js", "a - b", "a + b"),
      shell('git commit -am "Add right"'),
      shell("git switch -"),
    ],
  },
  {
    title: "write documentation",
    calls: [
      read("README.md"),
      edit("README.md", "# Tea", "# Tea and more"),
      shell("git diff README.md"),
    ],
  },
  {
    title: "make a script and run it",
    calls: [
      write("scripts/hello.sh", "echo hello\n"),
      shell("chmod +x scripts/hello.sh"),
      shell("sh scripts/hello.sh"),
    ],
  },
  {
    title: "try an idea in Node",
    calls: [shell("node -e 'console.log([1, 2, 3].at(-1))'"), shell('node -p "process.version"')],
  },
  {
    title: "move files into folders",
    calls: [
      shell("mkdir -p src/lib"),
      shell("git mv src/tea.js src/lib/tea.js"),
      shell("git status -s"),
    ],
  },
  {
    title: "format JSON",
    calls: [
      shell("cat data.json"),
      shell(
        'node -e \'const fs = require("fs"); fs.writeFileSync("data.json", JSON.stringify(JSON.parse(fs.readFileSync("data.json")), null, 2))\'',
      ),
    ],
  },
  {
    title: "find large files",
    calls: [shell("du -sh * | sort -h | tail -3"), shell("ls -S | head -3")],
  },
  {
    title: "who wrote this line",
    calls: [shell("git blame src/tea.js"), shell("git show --stat HEAD")],
  },
  {
    title: "compare two files",
    calls: [shell("diff src/tea.js test/tea.test.js"), shell("cmp src/tea.js src/tea.js")],
  },
  {
    title: "replace in many files",
    calls: [
      grep("tea", "src"),
      shell("grep -rl tea src | xargs sed -i 's/tea/Tea/g'"),
      shell("git diff --stat"),
    ],
  },
  {
    title: "run the tests in watch of time",
    calls: [
      shell("time node --test"),
      shell("for i in 1 2; do node --test >/dev/null && echo ok; done"),
    ],
  },
  {
    title: "read settings and versions",
    calls: [
      shell("cat package.json"),
      shell("node -p 'require(\"./package.json\").version'"),
      shell("git config --get user.name"),
    ],
  },
  {
    title: "make a temporary copy, compare, and remove it",
    calls: [
      shell(
        "cp src/tea.js /tmp/tea-copy.js && diff src/tea.js /tmp/tea-copy.js; rm /tmp/tea-copy.js",
      ),
      shell(
        "mkdir build-tmp && touch build-tmp/x && rmdir build-tmp 2>/dev/null || rm -r build-tmp",
      ),
    ],
  },
  {
    title: "install a package",
    calls: [read("package.json"), network(shell("npm install left-pad"))],
  },
  { title: "fetch a page", calls: [network(["fetch", { url: "https://example.org/tea" }])] },
  {
    title: "download a file",
    calls: [network(shell("curl -fsSL https://example.org/tea.txt -o tea.txt"))],
  },
  {
    title: "push a branch",
    calls: [shell("git status -sb"), network(shell("git push origin main"))],
  },
  {
    title: "get what others did",
    calls: [network(shell("git fetch origin")), shell("git log -3")],
  },
  { title: "install with pip", calls: [network(shell("pip install requests"))] },
  {
    title: "clone another repository",
    calls: [network(shell("git clone https://example.org/tea.git"))],
  },
  { title: "ask a host for its name", calls: [network(shell("ping -c 1 example.org"))] },
  { title: "read the user's settings", calls: [outside(read("../outside/notes.txt"))] },
  { title: "look at a key", calls: [outside(shell("cat ~/.ssh/id_ed25519"))] },
  {
    title: "change a file of another project",
    calls: [outside(write("../outside/notes.txt", "mine\n"))],
  },
  {
    title: "append to the shell's settings",
    calls: [outside(shell("echo 'alias t=tea' >> ~/.bashrc"))],
  },
  {
    title: "throw away all changes",
    calls: [shell("git status"), destructive(shell("git reset --hard HEAD~1"))],
  },
  { title: "remove what git does not know", calls: [destructive(shell("git clean -fdx"))] },
  { title: "rewrite what was pushed", calls: [destructive(shell("git push --force origin main"))] },
  { title: "start from nothing", calls: [destructive(shell("rm -rf ."))] },
];
