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

const MESSAGE = `git commit -m "$(cat <<'EOF'
Add teas

- green
- black
EOF
)"`;

const RENAME = `python3 - <<'PY'
from pathlib import Path
path = Path("src/tea.js")
path.write_text(path.read_text().replace("kind", "sort"))
PY`;

const SERVER = `node -e "require('http').createServer((q, s) => s.end('ok')).listen(3999)" &
sleep 1; curl -s http://localhost:3999/ || true; kill %1`;

/**
 * Another forty tasks on the same repository, of people who work with several languages and services: 24 that stay
 * inside of the workspace, 8 that need the network, 4 that reach outside and 4 that destroy something, most of
 * these with several calls.
 */
export const moreTasks: readonly Task[] = [
  {
    title: "what is this written in",
    calls: [
      shell("ls -1 && cat package.json | jq -r .name"),
      shell("find . -type f -not -path './.git/*' | sed 's/.*\\.//' | sort | uniq -c | sort -rn"),
      shell("git shortlog -sn --all && git log --graph --oneline --all | head -20"),
    ],
  },
  {
    title: "is the working tree clean",
    calls: [
      shell("git status --porcelain=v2 --branch"),
      shell("git diff --cached --stat; git stash list; git worktree list"),
    ],
  },
  {
    title: "which tools are installed",
    calls: [
      shell("which node npm python3 cargo go 2>/dev/null; node -v; python3 --version"),
      shell("env | grep -i node; printenv PATH | tr ':' '\\n' | head -3"),
      shell("date -u +%FT%TZ && uptime && nproc"),
    ],
  },
  {
    title: "use const everywhere",
    calls: [
      shell("grep -rnw var src test | cut -d: -f1 | sort -u"),
      shell("sed -i 's/\\bvar /const /g' src/*.js && git diff --stat"),
      shell('for f in src/*.js; do node --check "$f" || exit 1; done'),
    ],
  },
  {
    title: "rename a variable by a script",
    calls: [
      shell(RENAME),
      shell("git diff -U0 | cat"),
      shell("node --test 2>&1 | tail -3 || true"),
    ],
  },
  {
    title: "write a script in Python and use it",
    calls: [
      write("tools/stats.py", "import json\nprint(len(json.load(open('data.json'))['teas']))\n"),
      shell("python3 tools/stats.py"),
      shell("python3 -c \"import json; print(json.load(open('data.json'))['teas'][0])\""),
      shell("python3 -m json.tool data.json > /dev/null && echo valid"),
    ],
  },
  {
    title: "raise the version",
    calls: [
      shell(
        "jq '.version = \"1.1.0\"' package.json > package.json.tmp && mv package.json.tmp package.json",
      ),
      shell("node -p \"require('./package.json').version\""),
      shell("git add package.json && git commit -qm 'Version 1.1.0' && git tag v1.1.0"),
    ],
  },
  {
    title: "commit with a long message",
    calls: [
      write("src/teas.js", "export const teas = ['green', 'black'];\n"),
      shell(`git add src/teas.js && ${MESSAGE}`),
      shell("git log -1 --format='%h %s' && git show --stat --oneline HEAD"),
    ],
  },
  {
    title: "improve the last commit",
    calls: [
      edit("README.md", "Adds teas.", "Adds teas, and more."),
      shell("git commit -qa --amend --no-edit && git log --oneline | head -2"),
      shell("git reset --soft HEAD~1 && git commit -qm 'Add tea again'"),
    ],
  },
  {
    title: "move work to a branch",
    calls: [
      edit("src/tea.js", "a - b", "a + b"),
      shell("git stash && git switch -c fix-sum && git stash pop"),
      shell(
        "git commit -qam 'Fix the sum' && git switch main && git merge --no-ff -m 'Merge' fix-sum",
      ),
      shell("git branch -d fix-sum && git branch -vv"),
    ],
  },
  {
    title: "undo a commit",
    calls: [
      shell("git revert --no-edit HEAD && git log --oneline -3"),
      shell("git diff HEAD~1 --stat"),
    ],
  },
  {
    title: "lay out folders",
    calls: [
      shell("mkdir -p src/{api,db}/__tests__ && touch src/api/index.js src/db/index.js"),
      shell("find src -type d | sort; find src -empty -name '*.js'"),
      shell("rm -r src/db && rmdir src/api/__tests__"),
    ],
  },
  {
    title: "pack what was built",
    calls: [
      shell("npm run build 2>&1 | tee build.log && tail -2 build.log"),
      shell("tar czf tea.tgz dist && tar tzf tea.tgz && rm tea.tgz build.log"),
      shell("sha256sum dist/tea.js | cut -c1-12"),
    ],
  },
  {
    title: "check that the tests are stable",
    calls: [
      shell(
        "for i in 1 2 3; do node --test > /tmp/run-$i.log 2>&1; echo $?; done; grep -c '^# fail' /tmp/run-*.log",
      ),
      shell("time (node --test || true)"),
      shell("timeout 60 node --test --test-name-pattern=adds; true"),
    ],
  },
  {
    title: "try the server",
    calls: [
      shell(SERVER),
      shell("(ss -ltn || netstat -ltn) 2>/dev/null | head -5; ps aux | grep -c node"),
    ],
  },
  {
    title: "format and check types",
    calls: [
      shell("npx --no-install prettier --check . || true"),
      shell("npx --no-install tsc --noEmit -p . ; npx --no-install eslint src --fix ; true"),
      shell("npm run lint --silent -- --quiet; npm ls --depth=0; npm pkg get scripts"),
    ],
  },
  {
    title: "work on a crate and a module that are beside it",
    calls: [
      write("crates/tea/src/lib.rs", "pub fn add(a: i32, b: i32) -> i32 { a + b }\n"),
      shell(
        "cd crates/tea && ls src && (cargo fmt --check; cargo test --offline; cargo clippy -- -D warnings); true",
      ),
      shell("cd crates/tea/src && wc -l lib.rs && head -1 ../../../README.md"),
      shell("go vet ./... ; go test ./... ; gofmt -l . ; true"),
    ],
  },
  {
    title: "run the tests of Python",
    calls: [
      write(
        "tests/test_tea.py",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): pass\n",
      ),
      shell("python3 -m unittest discover -s tests -q"),
      shell("python3 -m pytest -q 2>/dev/null || python3 -m unittest -q tests/test_tea.py"),
      shell("ruff check . ; mypy tests ; black --check tests ; true"),
    ],
  },
  {
    title: "write a Makefile and use it",
    calls: [
      write(
        "Makefile",
        ".PHONY: test clean\ntest:\n\tnode --test\nclean:\n\trm -rf dist coverage\n",
      ),
      shell("make -n test && make clean"),
      shell("make test 2>&1 | tail -3; true"),
    ],
  },
  {
    title: "compare with the last version",
    calls: [
      shell("diff -u <(git show HEAD:src/tea.js) src/tea.js && echo same"),
      shell("git show HEAD:package.json | jq .version; git grep -n addTea HEAD -- src"),
      shell(
        "git format-patch -1 --stdout > /tmp/last.patch && git apply --check -R /tmp/last.patch",
      ),
    ],
  },
  {
    title: "look for what is not used",
    calls: [
      grep("addTea"),
      shell("git ls-files | xargs wc -l | tail -1"),
      shell("find . -name '*.js' -not -path '*/node_modules/*' -print0 | xargs -0 grep -L test"),
      shell('while read -r f; do grep -q tea "$f" && echo "$f"; done < <(git ls-files \'*.js\')'),
    ],
  },
  {
    title: "keep settings apart from the code",
    calls: [
      write(".env.example", "PORT=3000\n"),
      shell("cp .env.example .env && echo '.env' >> .gitignore && git status -s"),
      shell("set -a; . ./.env; set +a; echo $PORT"),
      shell("sed -i 's/PORT=.*/PORT=4000/' .env && cat .env"),
    ],
  },
  {
    title: "a small database for a test",
    calls: [
      shell(
        "sqlite3 /tmp/tea.db 'create table tea (name text); insert into tea values (1)' || true",
      ),
      shell('T=$(mktemp -d); cp -r src "$T"; ls "$T"; rm -rf "$T"'),
      shell("openssl rand -hex 8 || head -c 8 /dev/urandom | od -An -tx1"),
    ],
  },
  {
    title: "clean up after the build",
    calls: [
      shell(
        "mkdir -p dist coverage && touch dist/x.js && rm -rf dist coverage node_modules/.cache",
      ),
      shell("find . -name '*.log' -delete; find . -name '__pycache__' -type d -exec rm -rf {} +"),
      shell("git clean -nd && git gc --quiet"),
    ],
  },
  {
    title: "add packages",
    calls: [
      network(shell("pnpm add -D vitest")),
      network(shell("yarn install --frozen-lockfile")),
      network(shell("npm ci --ignore-scripts 2>&1 | tail -5")),
      network(shell("cd src && npm i left-pad --save")),
    ],
  },
  {
    title: "packages of other languages",
    calls: [
      network(shell("python3 -m pip install -r requirements.txt")),
      network(shell(". .venv/bin/activate && pip install -e .")),
      network(shell("cargo add serde --features derive && cargo build")),
      network(shell("go get example.org/tea@latest && go mod tidy")),
      network(shell("bundle install --jobs 4 || composer require tea/tea")),
    ],
  },
  {
    title: "open a pull request",
    calls: [
      network(shell("git push -u origin HEAD")),
      network(shell("gh pr create --fill --base main && gh pr view --json url")),
      network(shell("git fetch --all --prune && git rebase origin/main")),
    ],
  },
  {
    title: "deploy it",
    calls: [
      network(shell("rsync -avz --exclude .git ./ deploy@example.org:/srv/tea/")),
      network(
        shell(
          "scp dist/tea.js deploy@example.org:/srv/tea/ && ssh deploy@example.org 'systemctl restart tea'",
        ),
      ),
      network(shell("docker build -t tea . && docker push example.org/tea")),
      network(shell("kubectl apply -f k8s/ && kubectl rollout status deploy/tea")),
      network(shell("terraform init && terraform apply -auto-approve")),
    ],
  },
  {
    title: "ask a service",
    calls: [
      network(
        shell(
          "curl -sS -X POST -H 'content-type: application/json' -d @data.json https://api.example.org/teas",
        ),
      ),
      network(
        shell(
          'TOKEN=x; wget -qO- --header "Authorization: Bearer $TOKEN" https://api.example.org | jq .',
        ),
      ),
      network(
        shell(
          "python3 -c \"import urllib.request; print(urllib.request.urlopen('https://example.org').status)\"",
        ),
      ),
      network(shell("node -e \"fetch('https://example.org').then((r) => console.log(r.status))\"")),
    ],
  },
  {
    title: "look at the database of the team",
    calls: [
      network(shell("psql \"$DATABASE_URL\" -c 'select count(*) from teas'")),
      network(shell("PGPASSWORD=x psql -h db.example.org -U tea -c '\\dt'")),
      network(shell("redis-cli -h cache.example.org keys '*'")),
    ],
  },
  {
    title: "set up the machine",
    calls: [
      network(shell("curl -fsSL https://example.org/install.sh | bash")),
      network(shell("apt-get update && apt-get install -y jq")),
      network(shell("brew install jq")),
      network(shell("npx create-vite@latest app -- --template react")),
    ],
  },
  {
    title: "publish it",
    calls: [
      network(shell("npm version patch && npm publish --access public")),
      network(shell("python3 -m build && twine upload dist/*")),
      network(shell("git tag v2 && git push origin v2")),
    ],
  },
  {
    title: "look around on the machine",
    calls: [
      outside(shell("cat /etc/hosts /etc/passwd")),
      outside(shell("ls -la ~ ~/Documents")),
      outside(shell("cd .. && ls -la")),
      outside(shell("find / -name 'id_*' 2>/dev/null | head")),
    ],
  },
  {
    title: "use another project as a model",
    calls: [
      outside(shell("cp -r ../outside ./vendor")),
      outside(shell("diff -r src ../outside")),
      outside(shell("ln -s ../outside shared && cat shared/notes.txt")),
      outside(shell('D=$(dirname "$PWD"); cat "$D/outside/notes.txt"')),
    ],
  },
  {
    title: "save a copy elsewhere",
    calls: [
      outside(shell("tar czf ../tea-backup.tgz .")),
      outside(shell("cp README.md ~/notes.md")),
      outside(shell("git worktree add ../tea-fix main")),
    ],
  },
  {
    title: "set up the shell and git",
    calls: [
      outside(shell("git config --global user.email ada@example.org")),
      outside(shell("sed -i 's/# settings/export A=1/' ~/.bashrc")),
      outside(
        shell("python3 -c \"import os; open(os.path.expanduser('~/.profile'), 'a').write('x')\""),
      ),
      outside(read("~/.ssh/id_ed25519")),
    ],
  },
  {
    title: "drop what I did",
    calls: [
      edit("src/tea.js", "a - b", "a + b"),
      destructive(shell("git checkout -- src/tea.js")),
      destructive(shell("git restore .")),
      destructive(shell("git stash && git stash drop")),
      destructive(shell("git switch -c old && git switch main && git branch -D old")),
    ],
  },
  {
    title: "rewrite the history",
    calls: [
      destructive(shell("git push --force-with-lease origin main")),
      destructive(shell("git push origin --delete old")),
      destructive(shell("git filter-branch --tree-filter 'rm -f data.json' HEAD")),
      destructive(shell("git reflog expire --expire=now --all && git gc --prune=now")),
    ],
  },
  {
    title: "free some space",
    calls: [
      destructive(shell("sudo rm -rf /var/lib/docker")),
      destructive(shell("docker system prune -af --volumes")),
      destructive(shell("find . -type f -delete")),
      destructive(shell("rm -rf -- * .[!.]*")),
    ],
  },
  {
    title: "start the database again",
    calls: [
      destructive(shell("dropdb tea && createdb tea")),
      destructive(shell("psql -c 'drop schema public cascade'")),
      destructive(shell("terraform destroy -auto-approve")),
      destructive(shell("kubectl delete namespace tea")),
    ],
  },
];
