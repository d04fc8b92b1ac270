"""Which patches are wanted: the declared list, what each command makes of it, groups, names."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stages import LINES, MOD, SHIPPED, Stage, edit, make_diff, make_stage, patch, put, sample_wheel, to_toml, with_line

PRISTINE = b"".join(LINES)
AT = {"a": 3, "b": 9, "c": 15, "d": 21, "e": 27, "f": 33}


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> Stage:
    return make_stage(tmp_path, make_site, capsys.readouterr)


def line(letter: str) -> bytes:
    return b"line_%d = '%s'\n" % (AT[letter], letter.encode())


def one(letter: str, **keys: Any) -> dict[str, Any]:
    """A patch called ``letter`` that changes a line of its own."""
    return patch(letter, edit(AT[letter], line(letter)), **keys)


def applied(stage: Stage) -> str:
    """The letters of the patches that are applied, which must be those that the file holds."""
    if not stage.ledger_file.exists():
        assert stage.read() == PRISTINE
        return ""
    letters = "".join(sorted(row["patch"][-1] for row in stage.ledger()["applied"]))
    data = PRISTINE
    for letter in letters:
        data = with_line(AT[letter], line(letter), data)
    assert stage.read() == data
    return letters


@pytest.fixture
def several(stage: Stage) -> Stage:
    """alpha: a and b declared, c and d not; beta: e declared."""
    stage.add("alpha", one("a"), one("b"), one("c", default=False), one("d", default=False))
    stage.add("beta", one("e"))
    return stage


# ---- the table of commands ------------------------------------------------------------------------------------


def test_a_bare_apply_adds_the_declared_list_to_what_is_applied(several: Stage) -> None:
    several.run("apply", "alpha/c").expect()
    assert applied(several) == "c"
    several.run("apply").expect()
    assert applied(several) == "abce"


def test_apply_exact_reverts_what_is_applied_and_not_declared(several: Stage) -> None:
    several.run("apply", "alpha/c", "alpha/a").expect()
    assert several.actions("apply", "--exact") == {
        "alpha/a": "none",
        "alpha/b": "applied",
        "alpha/c": "reverted",
        "beta/e": "applied",
    }
    assert applied(several) == "abe"


def test_apply_exact_reverts_what_is_gone_from_the_patch_folder(several: Stage) -> None:
    several.run("apply").expect()
    several.add("alpha", one("a"))
    several.run("apply").expect()
    assert applied(several) == "abe"
    several.run("apply", "--exact").expect()
    assert applied(several) == "ae"


def test_apply_exact_takes_no_operand(several: Stage) -> None:
    assert several.json("apply", "--exact", "alpha/a", exit_code=2)["error"]["code"] == "usage"


def test_apply_x_adds_x_alone(several: Stage) -> None:
    several.run("apply", "beta").expect()
    several.run("apply", "alpha/d").expect()
    assert applied(several) == "de"


def test_apply_set_adds_its_declared_patches(several: Stage) -> None:
    several.run("apply", "alpha").expect()
    assert applied(several) == "ab"
    several.declare(select=["alpha/d"], deselect=["alpha/b"])
    several.run("apply", "alpha").expect()
    assert applied(several) == "abd"


def test_revert_x_takes_x_out_alone(several: Stage) -> None:
    several.run("apply", "alpha/a", "alpha/b", "alpha/c", "beta").expect()
    several.run("revert", "alpha/b").expect()
    assert applied(several) == "ace"


def test_revert_set_takes_all_its_applied_patches_out(several: Stage) -> None:
    several.run("apply", "alpha/a", "alpha/c", "beta").expect()
    assert several.actions("revert", "alpha") == {"alpha/a": "reverted", "alpha/c": "reverted"}
    assert applied(several) == "e"


@pytest.mark.parametrize("last", ["five", "nine"])
def test_the_hint_of_a_revert_that_is_refused_names_all_that_have_to_go(last: str, stage: Stage) -> None:
    five = edit(5, b"line_5 = 5.0\n")
    both = with_line(9, b"line_9 = 9.0\n", with_line(5, b"line_5 = 55\n"))
    on_five = make_diff({MOD: with_line(5, b"line_5 = 5.0\n")}, {MOD: both})
    third = edit(5, b"line_5 = 555\n", both) if last == "five" else edit(9, b"line_9 = 99\n", both)
    stage.add("fix", patch("one", five), patch("two", on_five), patch("three", third))
    stage.run("apply").expect()
    said = stage.run("revert", "fix/one").expect(5)
    assert "`patchkit revert fix/one fix/three fix/two`" in said.err
    stage.run("revert", "fix/one", "fix/three", "fix/two").expect()
    assert stage.read(MOD) == SHIPPED[MOD]


def test_revert_all_leaves_nothing(several: Stage) -> None:
    shipped = several.tree()
    several.run("apply", "alpha", "alpha/d", "beta").expect()
    several.run("revert", "--all").expect()
    assert several.tree() == shipped


def test_verify_set_speaks_of_all_its_applied_patches(several: Stage) -> None:
    several.run("apply", "alpha/a", "alpha/c", "beta").expect()
    assert several.states("verify", "alpha") == {"alpha/a": "applied", "alpha/c": "applied"}
    assert several.states("verify", "alpha/d", exit_code=1) == {"alpha/d": "pending"}


def test_a_patch_that_was_applied_and_is_declared_no_more_stays_until_it_is_reverted(several: Stage) -> None:
    several.run("apply").expect()
    several.declare(deselect=["alpha/b"])
    several.run("apply").expect()
    assert applied(several) == "abe"
    several.run("apply", "--exact").expect()
    assert applied(several) == "ae"


# ---- select and deselect --------------------------------------------------------------------------------------


def test_select_and_deselect_in_patchkit_toml_change_the_declared_list(several: Stage) -> None:
    several.declare(select=["alpha/c"], deselect=["alpha/a", "beta/e"])
    several.run("apply").expect()
    assert applied(several) == "bc"


def test_select_and_deselect_in_the_nearest_pyproject_change_the_declared_list(
    several: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[tool.patchkit]\npatches = "patches"\nselect = ["alpha/d"]\ndeselect = ["beta/e"]\n'
    put(tmp_path / "pyproject.toml", text.encode())
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    several.run("apply", patches=False).expect()
    assert applied(several) == "abd"


@pytest.mark.parametrize("key", ["select", "deselect"])
def test_a_set_cannot_be_selected_or_deselected_as_a_whole(several: Stage, key: str) -> None:
    several.declare(**{key: ["alpha"]})
    error = several.json("apply", exit_code=3)["error"]
    assert f'{key}[0]: "alpha" is not the name of a patch; write "SET/PATCH"' in error["message"]


def test_pyproject_and_patchkit_toml_must_not_contradict_each_other(
    several: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "pyproject.toml", b'[tool.patchkit]\nselect = ["alpha/c"]\n')
    several.declare(deselect=["alpha/c"])
    monkeypatch.chdir(tmp_path)
    error = several.json("apply", exit_code=3)["error"]
    assert "alpha/c is both selected and deselected" in error["message"]


def test_one_name_in_both_lists_of_one_file_is_exit_3(several: Stage) -> None:
    several.declare(select=["alpha/c"], deselect=["alpha/c"])
    error = several.json("apply", exit_code=3)["error"]
    assert '"alpha/c" is also in select' in error["message"]


@pytest.mark.parametrize("key", ["select", "deselect"])
def test_an_unknown_name_in_a_declaration_is_exit_3_and_says_where(several: Stage, key: str) -> None:
    several.declare(**{key: ["alpha/nix", "gamma/nix"]})
    before = several.tree()
    error = several.json("apply", exit_code=3)["error"]
    assert error["code"] == "unknown-patch"
    assert f"patchkit.toml: {key}" in error["message"]
    assert "'alpha/nix'" in error["message"] and "'gamma/nix'" in error["message"]
    assert several.tree() == before


@pytest.mark.parametrize("command", ["apply", "check", "revert", "verify"])
def test_an_unknown_operand_is_exit_3_with_a_suggestion_and_the_folders(several: Stage, command: str) -> None:
    several.run("apply").expect()
    before = several.tree()
    error = several.json(command, "alpha/a", "alpah", exit_code=3)["error"]
    assert error["code"] == "unknown-patch"
    assert "'alpah'" in error["message"] and str(several.patches) in error["message"]
    assert "'alpha'" in error["hint"]
    assert several.tree() == before


@pytest.mark.parametrize("operand", ["", "/", "alpha/", "/a", "alpha/a/b"])
def test_an_operand_that_is_no_name_is_a_usage_error(several: Stage, operand: str) -> None:
    assert several.json("apply", operand, exit_code=2)["error"]["code"] == "usage"


def test_a_set_without_a_declared_patch_cannot_be_applied_by_its_name(stage: Stage) -> None:
    stage.add("alpha", one("a", default=False))
    error = stage.json("apply", "alpha", exit_code=3)["error"]
    assert "alpha/PATCH" in error["hint"]


# ---- groups ---------------------------------------------------------------------------------------------------


@pytest.fixture
def grouped(stage: Stage) -> Stage:
    """a is the default of a group, b and c its alternatives; d stands alone."""
    stage.add(
        "alpha", one("a", group="g"), one("b", group="g", default=False), one("c", group="g", default=False), one("d")
    )
    return stage


def test_a_selected_patch_replaces_the_default_of_its_group(grouped: Stage) -> None:
    grouped.declare(select=["alpha/b"])
    grouped.run("apply").expect()
    assert applied(grouped) == "bd"


def test_a_newly_selected_patch_replaces_the_default_that_is_applied(grouped: Stage) -> None:
    grouped.run("apply").expect()
    assert applied(grouped) == "ad"
    grouped.declare(select=["alpha/b"])
    assert grouped.actions("apply") == {"alpha/a": "reverted", "alpha/b": "applied", "alpha/d": "none"}
    assert applied(grouped) == "bd"


def test_apply_x_replaces_the_member_of_its_group_that_is_applied(grouped: Stage) -> None:
    grouped.run("apply").expect()
    assert grouped.actions("apply", "alpha/c") == {"alpha/a": "reverted", "alpha/c": "applied"}
    assert applied(grouped) == "cd"
    grouped.run("apply", "alpha/b").expect()
    assert applied(grouped) == "bd"


def test_a_declared_default_never_replaces_a_member_that_was_applied_by_name(grouped: Stage) -> None:
    grouped.run("apply", "alpha/b").expect()
    grouped.run("apply").expect()
    assert applied(grouped) == "bd"
    grouped.run("apply", "alpha").expect()
    assert applied(grouped) == "bd"


def test_apply_exact_goes_back_to_the_default_of_the_group(grouped: Stage) -> None:
    grouped.run("apply", "alpha/b").expect()
    grouped.run("apply", "--exact").expect()
    assert applied(grouped) == "ad"


def test_a_default_takes_the_place_of_another_default_when_the_manifest_changes(grouped: Stage) -> None:
    grouped.run("apply").expect()
    grouped.add("alpha", one("a", group="g", default=False), one("b", group="g"), one("d"))
    grouped.run("apply").expect()
    assert applied(grouped) == "bd"


def test_naming_the_default_replaces_a_member_that_was_applied_by_name(grouped: Stage) -> None:
    grouped.run("apply", "alpha/b").expect()
    grouped.run("apply", "alpha/a").expect()
    assert applied(grouped) == "a"


def reasons(stage: Stage) -> dict[str, str]:
    return {row["patch"]: row["reason"] for row in stage.ledger()["applied"]}


def test_a_declared_patch_stays_declared_though_it_is_named(grouped: Stage) -> None:
    grouped.run("apply", "alpha/d", "alpha/b").expect()
    assert reasons(grouped) == {"alpha/b": "named", "alpha/d": "declared"}
    grouped.run("apply", "alpha/a").expect()
    assert reasons(grouped) == {"alpha/a": "declared", "alpha/d": "declared"}
    assert grouped.run("apply", "alpha/a").expect().out.endswith("nothing to do: 1 already applied\n")


def test_a_patch_that_was_named_while_it_was_declared_is_drift_once_it_is_not(grouped: Stage) -> None:
    grouped.run("apply", "alpha/d").expect()
    grouped.add("alpha", one("d", default=False))
    [row] = grouped.json("drift", exit_code=1)["drift"]
    assert (row["patch"], row["cause"]) == ("d", "patch-removed")
    grouped.run("apply", "alpha/d").expect()
    assert reasons(grouped) == {"alpha/d": "named"}
    assert grouped.json("drift")["drift"] == []


def test_two_members_of_a_group_cannot_be_named_together(grouped: Stage) -> None:
    before = grouped.tree()
    error = grouped.json("apply", "alpha/a", "alpha/b", exit_code=3)["error"]
    assert error["code"] == "group-clash" and "alpha/a and alpha/b are alternatives" in error["message"]
    assert grouped.tree() == before


def test_two_members_of_a_group_cannot_be_selected_together(grouped: Stage) -> None:
    grouped.declare(select=["alpha/b", "alpha/c"])
    error = grouped.json("apply", exit_code=3)["error"]
    assert error["code"] == "group-clash" and "alpha/b and alpha/c are alternatives" in error["message"]


def test_a_set_and_a_member_of_a_group_may_be_named_together_and_the_member_wins(grouped: Stage) -> None:
    grouped.run("apply", "alpha", "alpha/b").expect()
    assert applied(grouped) == "bd"


def test_groups_of_two_sets_have_nothing_to_do_with_each_other(stage: Stage) -> None:
    stage.add("alpha", one("a", group="g"))
    stage.add("beta", one("b", group="g"))
    stage.run("apply").expect()
    assert applied(stage) == "ab"


def test_alternatives_may_change_the_same_lines(stage: Stage) -> None:
    other = patch("b", edit(AT["a"], b"line_3 = 'other'\n"), group="g", default=False)
    stage.add("alpha", one("a", group="g"), other, one("d"))
    stage.run("apply").expect()
    stage.run("apply", "alpha/b").expect()
    assert stage.read() == with_line(AT["d"], line("d"), with_line(AT["a"], b"line_3 = 'other'\n"))


def test_an_alternative_that_does_not_fit_leaves_the_applied_member_in_place(stage: Stage) -> None:
    wrong = patch("b", edit(AT["a"], b"new\n", with_line(AT["a"], b"never shipped\n")), group="g", default=False)
    stage.add("alpha", one("a", group="g"), wrong)
    stage.run("apply").expect()
    before = stage.tree()
    stage.run("apply", "alpha/b").expect(5)
    assert stage.tree() == before
    assert applied(stage) == "a"


# ---- patches without a manifest, several folders ----------------------------------------------------------------


def test_a_patch_file_named_after_a_version_needs_no_manifest(stage: Stage) -> None:
    put(stage.patches / "some-dist==1.2.3.patch", edit(AT["a"], line("a")))
    put(stage.patches / "Some_Dist@1.2.4.patch", edit(AT["b"], line("b")))
    assert stage.actions("apply") == {"some-dist/default": "applied"}
    assert stage.read() == with_line(AT["a"], line("a"))
    stage.run("revert", "some-dist").expect()
    assert stage.read() == PRISTINE


def test_the_sets_of_several_folders_are_one_list(several: Stage, tmp_path: Path) -> None:
    manifest = {"schema": 1, "name": "gamma", "distribution": "some-dist", "patch": [{"name": "f"}]}
    manifest["patch"][0]["variant"] = [{"versions": ">=1", "file": "f.patch"}]  # type: ignore[index]
    put(tmp_path / "more" / "gamma" / "patchset.toml", to_toml(manifest).encode())
    put(tmp_path / "more" / "gamma" / "f.patch", edit(AT["f"], line("f")))
    several.run("apply", "--patches", tmp_path / "more").expect()
    assert applied(several) == "abef"


def test_two_distributions_are_patched_in_one_transaction(
    tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    other = sample_wheel(tmp_path / "wheels", "2.0", {"other/mod.py": PRISTINE}, name="other.dist")
    stage = make_stage(tmp_path, make_site, capsys.readouterr, sample_wheel(tmp_path / "wheels"), other)
    diff = edit(5, b"line_5 = 'other'\n").replace(MOD.encode(), b"other/mod.py")
    stage.add("alpha", one("a"))
    stage.add("beta", patch("o", diff), distribution="Other_Dist")
    shipped = stage.tree()
    assert stage.actions("apply") == {"alpha/a": "applied", "beta/o": "applied"}
    assert stage.read("other/mod.py") == with_line(5, b"line_5 = 'other'\n")
    stage.write("other/mod.py", b"an edit\n")
    stage.run("revert", "--all").expect(5)
    assert stage.read() == with_line(AT["a"], line("a"))
    stage.write("other/mod.py", with_line(5, b"line_5 = 'other'\n"))
    stage.run("revert", "--all").expect()
    assert stage.tree() == shipped


def test_a_set_that_does_not_fit_keeps_all_others_out(several: Stage) -> None:
    several.add("gamma", patch("f", edit(AT["f"], line("f"), with_line(AT["f"], b"never shipped\n"))))
    before = several.tree()
    said = several.json("apply", exit_code=5)
    assert {row["action"] for row in said["patches"]} == {"none"}
    assert {f"{row['set']}/{row['patch']}": row["state"] for row in said["patches"]} == {
        "alpha/a": "pending",
        "alpha/b": "pending",
        "beta/e": "pending",
        "gamma/f": "conflict",
    }
    assert several.tree() == before
    assert SHIPPED[MOD] == several.read()


# ---- any sequence of commands -----------------------------------------------------------------------------------

SETS = {"alpha": "abc", "beta": "def"}
IDS = [f"{set_name}/{letter}" for set_name, letters in SETS.items() for letter in letters]
OPTIONAL = {"alpha/c", "beta/f"}


class Model:
    """The table of commands, for patches on lines of their own: what is applied, with which text."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage = stage
        self.random = random.Random(seed)
        self.applied: dict[str, int] = {}
        self.at_hand = dict.fromkeys(IDS, 0)
        self.select: set[str] = set()
        self.deselect: set[str] = set()
        self.write()

    def write(self) -> None:
        for set_name, letters in SETS.items():
            ids = {letter: f"{set_name}/{letter}" for letter in letters}
            patches = [
                patch(letter, edit(AT[letter], self.text(id, self.at_hand[id])), default=id not in OPTIONAL)
                for letter, id in ids.items()
            ]
            self.stage.add(set_name, *patches)
        self.stage.declare(sorted(self.select), sorted(self.deselect))

    def text(self, id: str, version: int) -> bytes:
        return f"line_{AT[id[-1]]} = '{id} {version}'\n".encode()

    @property
    def declared(self) -> set[str]:
        return {id for id in IDS if id not in OPTIONAL} - self.deselect | self.select

    def step(self) -> None:
        """One change of the patch folder or one command, with the exit code that it must have."""
        id = self.random.choice(IDS)
        set_name = id.partition("/")[0]
        own = {id for id in self.declared if id.startswith(set_name)}
        match self.random.randrange(10):
            case 0 | 1:
                self.at_hand[id] += 1
                self.write()
            case 2:
                toggled = self.select if id in OPTIONAL else self.deselect
                toggled ^= {id}
                self.write()
            case 3 | 4:
                self.apply(["apply"], {*self.applied, *self.declared})
            case 5:
                dropped = self.applied.keys() - self.declared
                self.applied = {id: text for id, text in self.applied.items() if id not in dropped}
                self.apply(["apply", "--exact"], self.declared, dropped=bool(dropped))
            case 6:
                self.apply(["apply", id], {id})
            case 7 if own:
                self.apply(["apply", set_name], own)
            case 8:
                self.stage.run("revert", id).expect()
                self.applied.pop(id, None)
            case 9:
                self.stage.run("revert", set_name).expect()
                self.applied = {id: text for id, text in self.applied.items() if not id.startswith(set_name)}
            case _:
                self.stage.run("apply", set_name).expect(3)

    def apply(self, words: list[str], ids: set[str], *, dropped: bool = False) -> None:
        self.stage.run(*words).expect(0 if ids or dropped else 4)
        self.applied |= {id: self.at_hand[id] for id in ids}

    def check(self) -> None:
        """The file is the fold, and the states are what the table says."""
        data = PRISTINE
        for id, version in self.applied.items():
            data = with_line(AT[id[-1]], self.text(id, version), data)
        assert self.stage.read() == data
        expected = dict.fromkeys(self.declared, "pending")
        expected |= {id: "applied" if text == self.at_hand[id] else "outdated" for id, text in self.applied.items()}
        assert self.stage.states() == expected
        assert (self.stage.site / ".patchkit").exists() == bool(self.applied)


@pytest.mark.parametrize("seed", range(3))
def test_any_sequence_of_commands_does_what_the_table_says(stage: Stage, seed: int) -> None:
    shipped = stage.tree()
    model = Model(stage, seed)
    for _ in range(25):
        model.step()
        model.check()
    stage.run("revert", "--all").expect()
    assert stage.tree() == shipped
