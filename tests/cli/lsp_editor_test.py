"""dtap lsp in an editor: Neovim's own client starts it, and what its user sees is asked of Neovim."""
import json
import shutil
import subprocess

import pytest

import harness

EDITOR = shutil.which("nvim")
pytestmark = pytest.mark.skipif(not EDITOR, reason="needs Neovim (the package neovim)")

# type(text): as if typed at the end; look(what, text): the answer at the first place where the text stands in the buffer, or behind
# it.
LUA = r"""
vim.o.virtualedit = "onemore"
local out = {}
local function fail(why) io.stdout:write(vim.fn.json_encode({ error = why }) .. "\n") vim.cmd("cquit") end
local function await(what, condition) if not vim.wait(%(limit)d, condition, 10) then fail("waited for " .. what) end end
local id = vim.lsp.start_client({ name = "dtap", cmd = { "%(dtap)s", "lsp" }, root_dir = "%(dir)s" })
vim.lsp.buf_attach_client(0, id)
await("the server", function() return #vim.lsp.buf_get_clients(0) > 0 and vim.lsp.buf_get_clients(0)[id].initialized ~= false end)

local function diagnostics(count)
	await(count .. " diagnostics", function() return #vim.diagnostic.get(0) == count end)
	local rows = {}
	for _, d in ipairs(vim.diagnostic.get(0)) do
		table.insert(rows, { line = d.lnum, from = d.col, to = d.end_col, severity = d.severity, message = d.message })
	end
	return rows
end
local function type(text) vim.cmd("normal! Go" .. text) end
local function look(what, text, behind)
	vim.fn.cursor(1, 1)
	vim.fn.search("\\V" .. text, "c")
	if behind then vim.fn.cursor(vim.fn.line("."), vim.fn.col(".") + #text) end
	local answers = vim.lsp.buf_request_sync(0, "textDocument/" .. what, vim.lsp.util.make_position_params(), %(limit)d)
	if not answers or not answers[id] or answers[id].err then fail(what .. " at " .. text) end
	return answers[id].result
end
local function labels(result)
	local names = {}
	for _, item in ipairs(result.items or result) do table.insert(names, item.label) end
	return names
end
%(steps)s
vim.lsp.stop_client(id)
await("the server's end", function() return vim.lsp.client_is_stopped(id) end)
io.stdout:write(vim.fn.json_encode(out) .. "\n")
vim.cmd("qall!")
"""


def edit(tmp_path, name, text, steps):
    """What @steps put into the table out while Neovim shows the file."""
    file, script = tmp_path / name, tmp_path / "steps.lua"
    file.write_text(text)
    script.write_text(LUA % {"dtap": harness.BUILD / "dtap", "dir": tmp_path, "limit": 1000 * harness.TIMEOUT_S, "steps": steps})
    result = subprocess.run([EDITOR, "--headless", "--clean", "-n", file, "-c", f"luafile {script}"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=4 * harness.TIMEOUT_S)
    assert result.returncode == 0, (result.stdout, result.stderr)
    answers = json.loads(result.stdout.strip().splitlines()[-1])
    assert "error" not in answers, answers
    return answers


def test_d(tmp_path):
    out = edit(tmp_path, "x.d", "BEGIN { count_of_calls = 1; }\n", r"""
        out.none = diagnostics(0)
        type('tick-1s { /* ü€😀 */ trace(nosuchname); }')
        out.wrong = diagnostics(1)
        vim.cmd("silent %s/nosuchname/count_of_calls/")
        out.mended = diagnostics(0)
        type('END { copyins')
        out.completed = labels(look("completion", "copyins", true))
        vim.cmd([[silent %s/copyins$/printf("%d", pid); }/]])
        diagnostics(0)
        out.hover = look("hover", "printf")
        out.of_variable = look("hover", "pid")
        """)
    assert out["none"] == [] and out["mended"] == [], out
    [wrong] = out["wrong"]
    line = "tick-1s { /* ü€😀 */ trace(nosuchname); }"
    at = len(line[:line.index("nosuchname")].encode())
    assert wrong["line"] == 1 and wrong["from"] == at and wrong["severity"] == 1 and "nosuchname" in wrong["message"], wrong
    assert out["completed"] == ["copyinstr"], out
    assert "printf" in json.dumps(out["hover"]) and "pid" in json.dumps(out["of_variable"]), out


def test_stap(tmp_path):
    out = edit(tmp_path, "x.stp", "function twice:long(n:long) { return 2 * n }\nprobe begin { println(twice(21)) exit() }\n", r"""
        out.none = diagnostics(0)
        type('probe timer.s(1) { println(thrice(1)) }')
        out.wrong = diagnostics(1)
        vim.cmd("silent %s/thrice/twice/")
        out.mended = diagnostics(0)
        out.own = look("definition", "twice(21")
        out.tapset = look("definition", "println")
        out.completed = labels(look("completion", "probe time", true))
        out.hover = look("hover", "exit")
        """)
    assert out["none"] == [] and out["mended"] == [] and out["wrong"][0]["line"] == 2, out
    [own] = [out["own"]] if isinstance(out["own"], dict) else out["own"]
    assert own["uri"].endswith("/x.stp") and own["range"]["start"]["line"] == 0, own
    assert any(name.startswith("timer") for name in out["completed"]) and "exit" in json.dumps(out["hover"]), out
