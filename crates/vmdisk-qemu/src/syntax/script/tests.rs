//! What the evaluation finds, and what bash passes to QEMU.

use super::super::hole::{Command, UNSET};
use super::*;
use std::io::Write;
use std::process::{self, Stdio};

fn starts_qemu(words: &[Text]) -> bool {
    let words = &words[usize::from(words[0].as_str() == "exec")..];
    words[0].as_str() == "qemu-system-x86_64"
}

fn evaluated(script: &str) -> Vec<Vec<String>> {
    let evaluated = evaluate(script);
    let commands = evaluated.commands.iter();
    let starts = commands.filter(|it| starts_qemu(&it.words));
    let words = |command: &Command| {
        let words = command.words.iter().map(|it| it.as_str().to_owned());
        words.filter(|word| word != "exec").collect()
    };
    starts.map(words).collect()
}

fn try_evaluate(script: &str) -> Result<Evaluated, ReadFailure> {
    let mut text = Text::empty(0);
    text.push_verbatim(script, Span::new(0, script.len()));
    super::evaluate(
        text,
        starts_qemu,
        &Decisions::new(),
        &BTreeMap::new(),
        Evaluated::default(),
    )
}

fn evaluate(script: &str) -> Evaluated {
    try_evaluate(script).unwrap()
}

/// The arguments that bash passes to QEMU in each script; `None` without bash.
fn real(scripts: &[String]) -> Option<Vec<Vec<Vec<String>>>> {
    let name = format!("vmdisk-script-{}-{}", std::process::id(), scripts.len());
    let folder = std::env::temp_dir().join(name);
    let program = folder.join("qemu-system-x86_64");
    let stub = "#!/bin/sh\nprintf '%s\\001' \"${0##*/}\" \"$@\"\nprintf '\\002'\n";
    vmdisk_testing::write_program(&program, stub);
    let mut all = String::new();
    for script in scripts {
        all.push_str(&format!(
            "bash <<'END OF SCRIPT'\n{script}\nEND OF SCRIPT\nprintf '\\003'\n"
        ));
    }
    let bash = process::Command::new("bash")
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut bash) = bash else {
        let is_required = std::env::var("VMDISK_REAL").is_ok_and(|it| it == "require");
        assert!(!is_required, "there is no bash");
        println!("skipped: there is no bash");
        return None;
    };
    let mut input = bash.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(all.as_bytes()));
    let output = bash.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = |start: &str| start.split_terminator('\u{1}').map(str::to_owned).collect();
    let starts = |script: &str| script.split_terminator('\u{2}').map(words).collect();
    Some(text.split_terminator('\u{3}').map(starts).collect())
}

/// Scripts of which everything is known.
const KNOWN: [&str; 98] = [
    "set -- /a '/b c' d; L=(x 'y z' w); qemu-system-x86_64 \"${*:1:1}\" \"${*:2}\" \"${L[*]:1}\" \"${L[*]/#/-}\" ${#L[*]} \"${#L[*]}\" ${L[-1]} \"${L[-2]}\" \"${*:-q}\" \"${*%c}\"",
    "qemu-system-x86_64 /srv/{a,b}.img x,{c=1,d='e, f'},\"{g,h}\" {i..k}{1..2} {a{b,c},d}{,e} {x} {5..1..2} {01..10..3} {,} pre{\"a b\",'c'}",
    "A='p q'; L=(m n); qemu-system-x86_64 {$A,\"${A}s\"}.x \"$A\"{1,2} {\"${L[@]}\",o} file=\\{a,b\\} ${A}{,}",
    r#"qemu-system-x86_64 $'/srv/\101.img' $'it\'s \x41\u0042\n\t\e[1m\cG\\ \"' a$'b\0c'd $'\q\x' "#,
    "qemu-system-x86_64 -a $\"b c\" \"$'x'\" \"<(y)\" '>(z)' \\<\\(",
    "f() { cat >/dev/null; }; qemu-system-x86_64 -a 2> >(f) -b; qemu-system-x86_64 -c < <(echo x) -d",
    "cd /; A=$(cd /usr/bin && pwd); qemu-system-x86_64 $A $(pwd) $PWD",
    "(cd /usr; qemu-system-x86_64 $PWD); x() { cd /; }; x; qemu-system-x86_64 $PWD",
    "A=$(printf ' %q' -a 'b c' '$d,e=~#' '' '~'); eval \"qemu-system-x86_64 $A\"",
    "qemu-system-x86_64 \"$(printf '%q ' -a \"it's\" 'x;y|z&(w)' '\"{a,b}*?[c]^!')\"",
    "A=1; qemu-system-x86_64 -a $A ${A}b \"$A\" '$A' \"a${A}c\"",
    "A='x  y'; qemu-system-x86_64 $A \"$A\" -p$A-s \"-p$A\"",
    "A=; qemu-system-x86_64 -a $A \"$A\" b",
    "export A=1; readonly B=$A; declare -r C=\"$B 2\"; qemu-system-x86_64 $A $B $C",
    "A=a; A+=b; A=\"$A c\"; A=\"${A} d\"; qemu-system-x86_64 $A",
    "L=(-a 'b c'); L+=(d \"${L[@]}\"); L[4]=z; qemu-system-x86_64 \"${L[@]}\" \"${L[1]}\" ${L[1]} ${#L[@]}",
    "L+=(-x); L=(-y \"${L[@]}\"); qemu-system-x86_64 ${L[@]} \"${L[*]}\"",
    "L=(); qemu-system-x86_64 -a \"${L[@]}\" -b",
    "A=a.b.c; qemu-system-x86_64 ${A%.*} ${A%%.*} ${A#*.} ${A##*.} ${#A} ${A/./-} ${A//./-} ${A:2:1} ${A^^}",
    "A=x; B=; qemu-system-x86_64 ${A:+y} ${B:+y} ${B+z} ${B:-d} \"${B-d}\" ${B:=e} $B",
    "N=2; M=$((N * 3 + 1)); ((N++)); let N+=2; qemu-system-x86_64 $N $M $((M % 4))",
    "set -- -a 'b c'; set -- \"$@\" -d; qemu-system-x86_64 \"$@\" $# $1 \"$2\"; shift 2; qemu-system-x86_64 \"$@\"",
    "set -- -x; f() { qemu-system-x86_64 \"$@\" -in $1; }; f -a 'b c'; qemu-system-x86_64 \"$@\"",
    "f() { local a=$1; g \"$a\" -z; }; g() { qemu-system-x86_64 \"$@\"; }; a=0; f 'x y'; qemu-system-x86_64 -a $a",
    "f() { if [ -z \"$1\" ]; then return; fi; A=set; }; A=un; f; qemu-system-x86_64 $A; f x; qemu-system-x86_64 $A",
    "for d in a b; do O=\"$O -d $d\"; done; qemu-system-x86_64 $O",
    "O=; for d in a 'b c'; do O+=\" -d $d\"; done; qemu-system-x86_64 $O $d",
    "for ((i = 0; i < 3; i++)); do L+=(-d$i); done; qemu-system-x86_64 \"${L[@]}\" $i",
    "set -- p q; for x; do L+=($x.img); done; qemu-system-x86_64 ${L[@]}",
    "A=1; if [ \"$A\" = 1 ]; then B=y; else B=n; fi; qemu-system-x86_64 $B",
    "A=3; if [[ $A == 1 ]]; then B=1; elif [ $A -gt 2 ]; then B=2; else B=3; fi; qemu-system-x86_64 $B",
    "A=ab; case $A in x|y) B=1 ;; a*) B=2 ;; *) B=3 ;; esac; qemu-system-x86_64 $B",
    "D=; [ -n \"$D\" ] && O=-d; [ -z \"$D\" ] && O=\"$O -e\"; [ -n \"$D\" ] || O=\"$O -f\"; qemu-system-x86_64 $O",
    "(A=in; qemu-system-x86_64 $A); A=${A:-out}; qemu-system-x86_64 -x",
    "C=\"qemu-system-x86_64 -a\"; C=\"$C -b c\"; $C d",
    "c=(qemu-system-x86_64); c+=(-a 'b c'); \"${c[@]}\"",
    "P=qemu-system-; A=x86_64; \"$P$A\" -q",
    "A=1; eval \"qemu-system-x86_64 -a $A \\$A '\\$A'\"",
    "export A=1; B=2; bash -c \"qemu-system-x86_64 -a \\$A $B 'x y'\"",
    "A=1; sh -s <<EOF\nB=2\nqemu-system-x86_64 -a $A \\$B\nEOF",
    "sh -s <<'EOF'\nB=2\nqemu-system-x86_64 -a $B\nEOF",
    "A=1; cat > run.sh <<EOF\nqemu-system-x86_64 \\\\\n  -a $A \\\\\n  -b\nEOF\nsh run.sh",
    "cat >&2 <<EOF\nqemu-system-x86_64 -not $A\nEOF\nqemu-system-x86_64 -a",
    "qemu-system-x86_64 -a x`# y z`,b\"`# c d`\" -c",
    "qemu-system-x86_64 -a `# comment` \\\n  $(: comment) -b",
    "A=x; exec qemu-system-x86_64 \\\n -a file=$A,\\\nb=c \"d \\\n e\"; qemu-system-x86_64 -never",
    "printf -v A 'f=%s/%02d' /x 4; qemu-system-x86_64 \"$A\"",
    "J='{\"a\":\"'\"$HOMELESS\"'\"}'; J=\"{\\\"b\\\":1}\"; qemu-system-x86_64 \"$J\"",
    "f() { echo usage; exit 1; }; A=1; [ \"$A\" = 1 ] || f; qemu-system-x86_64 $A",
    "A=1; true && B=2 && qemu-system-x86_64 $A $B",
    "A=1; A=2 true; A=3 qemu-system-x86_64 -a $A",
    "declare -A T; A=x; while false; do A=y; done; qemu-system-x86_64 $A",
    "run() { echo \"$*\" >&2; \"$@\"; }; A=b; run qemu-system-x86_64 -a $A 2>/dev/null",
    "read -r -d '' O <<'E' || true\n-a b\n-c d\nE\nqemu-system-x86_64 $O",
    "A=1; O=$(cat <<E\n-a $A\n-b\nE\n); qemu-system-x86_64 $O",
    "while read -r p f; do L+=(-d \"$p,$f\"); done <<E\n/a x y\n/b z\nE\nqemu-system-x86_64 \"${L[@]}\"",
    "for s in a:b c:d:e; do IFS=: read -r x y <<< \"$s\"; L+=($x \"$y\"); done; qemu-system-x86_64 \"${L[@]}\" a:b",
    "read -r A B <<< \"x  y z \"; qemu-system-x86_64 $A \"$B\"",
    "mapfile -t L <<'E'\n-a\nb c\nE\nqemu-system-x86_64 \"${L[@]}\"",
    "IFS=, read -ra L <<< \"a,b c,,d\"; qemu-system-x86_64 \"${L[@]}\" ${#L[@]}",
    "o=(a=b c=d); d=$(IFS=,; echo \"${o[*]}\"); qemu-system-x86_64 \"$d\" \"${o[*]}\"",
    "IFS=:; A=a:b; qemu-system-x86_64 $A \"$A\" x:y; unset IFS; B=\"c d\"; qemu-system-x86_64 $B",
    "OLD=$IFS; IFS=$'\\n'; A='a b\nc'; qemu-system-x86_64 $A; IFS=$OLD; qemu-system-x86_64 $A",
    "D1=/a D2=/b; for n in 1 2; do v=D$n; L+=(${!v}); done; qemu-system-x86_64 \"${L[@]}\"",
    "L=(a 'b c'); for i in \"${!L[@]}\"; do M+=(\"$i-${L[$i]}\"); done; qemu-system-x86_64 \"${M[@]}\"",
    "L=(a b); qemu-system-x86_64 ${L[@]/#/-d } \"${L[@]/%/.img}\" ${L[0]/#a/z} ${L[@]%b}",
    "f() { local -n r=$1; r+=(-d \"$2\"); }; l=(-m); f l 'x y'; f l z; r=1; qemu-system-x86_64 \"${l[@]}\" $r",
    "i=1; while [ $i -le 3 ]; do O=\"$O -d$i\"; i=$(expr $i + 1); done; qemu-system-x86_64 $O $i",
    "i=0; while (( i < 2 )); do L+=($i); ((i++)); done; qemu-system-x86_64 \"${L[@]}\"",
    "i=0; until [ $i = 2 ]; do i=$((i+1)); done; qemu-system-x86_64 -$i",
    "set -- a b c; while [ -n \"$1\" ]; do L+=(-x \"$1\"); shift; done; qemu-system-x86_64 \"${L[@]}\" \"$@\"",
    "set -- a b c; while [ $# -gt 1 ]; do L+=(-x \"$1\"); shift; done; qemu-system-x86_64 \"${L[@]}\" \"$@\"",
    "F=1; C=$([ \"$F\" = 1 ] && echo unsafe || echo none); qemu-system-x86_64 $C",
    "L=(-a); L+=( -b ); if (( ${#L[@]} > 1 )); then echo \"${#L[@]}\" >&2; L+=(-c); fi; qemu-system-x86_64 \"${L[@]}\"",
    "d() { local -r p=$1; local o=\"f=$p\"; o+=\",x\"; printf '%s' \"$o\"; }; qemu-system-x86_64 \"$(d /a)\" \"$(d /b)\"",
    "A=$(echo -n a; echo b); qemu-system-x86_64 $A$(echo -e c)",
    "echo start >&2 && B=1; qemu-system-x86_64 $B",
    "while read -r a; do L+=(\"$a\"); done <<< \"x\ny\"; qemu-system-x86_64 \"${L[@]}\" \"[$a]\"",
    "for d in a skip b; do if [ $d = skip ]; then continue; fi; O+=\" -$d\"; done; qemu-system-x86_64 $O",
    "for d in a b c; do O+=\" -$d\"; [ $d = b ] && break; done; qemu-system-x86_64 $O $d",
    "while true; do qemu-system-x86_64 -a; break; done; qemu-system-x86_64 -b",
    "N=0; while ((N < 3)); do N=$((N+1)); [ $N -eq 2 ] && continue; L+=(-$N); done; qemu-system-x86_64 \"${L[@]}\"",
    "for i in a b; do for j in 1 2; do [ $j = 2 ] && break; O+=\" $i$j\"; done; done; qemu-system-x86_64 $O",
    "declare -A C; C[d]=/a; for k in d; do C[$k$k]=/b; qemu-system-x86_64 \"${C[$k]}\" \"${C[dd]}\"; done",
    "e=root:/a.q:qcow2; i=${e%%:*}; r=${e#*:}; qemu-system-x86_64 $i ${r%:*} ${r##*:}",
    "T=raw; [[ -n \"$T\" && \"$T\" != qcow2 ]] && O=a; [[ -z $T || $T == raw && -n $O ]] && P=b; qemu-system-x86_64 $O $P",
    "a=5 b=3; qemu-system-x86_64 $((1<<10)) $((a > b ? 1024 : 512)) $((a < b ? 1 : 16>>2))",
    "D=(/a /b); printf -v O ' -f %s' \"${D[@]}\"; qemu-system-x86_64 $O $(printf -- '%s,%d ' x 1 y 2)",
    "for l in {a..c}; do O+=\" d$l\"; done; qemu-system-x86_64 $O x{b..d}y",
    "L=(a 'b c' d); set -- p 'q r' s; qemu-system-x86_64 \"${L[@]:1}\" \"${L[@]:0:2}\" ${L[@]: -1} \"${@:2}\" \"${@:1:1}\"",
    "A=abcdef; N=2; qemu-system-x86_64 ${A:1:2} ${A:$N} ${A: -2} ${A:N+1:1} ${A:9}",
    "sh -c 'qemu-system-x86_64 -a $1 \"$@\" $3' x 'y z' w; bash -c 'qemu-system-x86_64 -b $1 $#'",
    "declare -i N=2+3; declare -r -i M=\"N * 2\"; f() { local -i n=N-1; qemu-system-x86_64 $n; }; f; qemu-system-x86_64 $N $M",
    "mapfile -t L < <(printf '%s\\n' a 'b c'); while read -r x; do L+=(-$x); done < <(echo d; echo e); qemu-system-x86_64 \"${L[@]}\"",
    "O=$(printf '%s %s\\n' a b c d; printf 'e\\n'); qemu-system-x86_64 \"$O\" $(printf '%s\\n' -x 'y z')",
    "b() { [ \"$1\" -gt 10 ]; }; s() { local n=$1; [[ $n == a* ]]; }; if b 20; then A=1; fi; b 5 || A+=2; s abc && A+=3; qemu-system-x86_64 $A",
    "m() { local -a c=(qemu-system-x86_64); c+=(-a); \"${c[@]}\" \"$@\"; }; m x 'y z'",
    "read -r A <<< ' a,b '; IFS=,; set -- $A; qemu-system-x86_64 \"$1\" \"$2\" \"$*\"",
];

#[test]
fn what_bash_passes_to_qemu_is_what_the_evaluation_finds() {
    let scripts = KNOWN.map(str::to_owned);
    let Some(real) = real(&scripts) else { return };
    let pairs = scripts.iter().zip(real);
    let wrong = pairs.filter(|(script, real)| evaluated(script) != *real);
    let wrong: Vec<_> = wrong.map(|it| (evaluated(it.0), it)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Random scripts.
struct Writer(u64);

impl Writer {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695);
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    fn of(&mut self, words: &[&str]) -> String {
        words[self.next(words.len())].to_owned()
    }

    fn value(&mut self) -> String {
        self.of(&[
            "x",
            "'a b'",
            "\"$A\"",
            "$B",
            "\"$B-$A\"",
            "${C}c",
            "\"$C d\"",
            "a.img",
            "\"\"",
            "${A%.*}",
            "${B:-z}",
            "\"${A:+q}\"",
            "$((N + 1))",
            "\"${L[*]}\"",
            "\"'$A'\"",
            "${#L[@]}",
            "${L[0]}",
            "\"\\$A\"",
            "$1",
            "\"$*\"",
        ])
    }

    fn condition(&mut self) -> String {
        let (a, b) = (self.value(), self.value());
        match self.next(4) {
            0 => format!("[ -n {a} ]"),
            1 => format!("[[ {a} == {b} ]]"),
            2 => format!("[ \"$N\" -lt {} ]", self.next(4)),
            _ => "[ -e \"$RANDOM_FILE\" ]".to_owned(),
        }
    }

    fn statement(&mut self, depth: usize) -> String {
        let name = self.of(&["A", "B", "C"]);
        let value = self.value();
        let kinds = match depth {
            0 => 16,
            1 | 2 => 13,
            _ => 8,
        };
        match self.next(kinds) {
            0 | 1 => format!("{name}={value}"),
            2 => format!("{name}+={value}"),
            3 => format!("L+=({value} -o)"),
            4 => format!("L=({value} \"${{L[@]}}\")"),
            5 => format!("set -- \"$@\" {value}"),
            6 => format!("N=$((N + {}))", self.next(3)),
            7 => format!("{name}=\"${name} {}\"", self.next(9)),
            8 => {
                let (a, b) = (self.statement(depth + 1), self.statement(depth + 1));
                format!("if {}; then\n{a}\nelse\n{b}\nfi", self.condition())
            }
            9 => format!("{} && {}", self.condition(), self.statement(depth + 1)),
            10 => {
                let body = self.statement(depth + 1);
                format!("for X in {value} y; do\n{body}; {name}=$X\ndone")
            }
            11 => {
                let (a, b) = (self.statement(depth + 1), self.statement(depth + 1));
                format!("case {value} in\n x|a*) {a} ;;\n *) {b} ;;\nesac")
            }
            12 => format!("( {} )", self.statement(depth + 1)),
            13 | 14 => {
                let (early, late) = (self.statement(depth + 1), self.statement(depth + 1));
                let condition = self.condition();
                let end = self.of(&["return", "return 1", ":", "{ A=${B:+e}; return; }"]);
                let next = self.of(&["", "[ -e \"$RANDOM_FILE\" ] && return", "g"]);
                format!(
                    "g() {{ C=${{A:-g}}; }}\nh() {{ if {condition}; then\n{early}\n{end}\nfi\n{next}\n{late}\n}}\nh {value} 3"
                )
            }
            _ => {
                let body = self.statement(depth + 1);
                format!("f() {{ local B={value}; {body}; {name}=\"$1\"; }}\nf {value} 2")
            }
        }
    }

    fn script(&mut self) -> String {
        let mut lines = vec!["set --; A=a.x; B=; C=c; N=1; L=()".to_owned()];
        let count = 2 + self.next(6);
        lines.extend((0..count).map(|_| self.statement(0)));
        lines.push("qemu-system-x86_64 -a \"$A\" $B -c$C $N \"${L[@]}\" \"$@\" $1".to_owned());
        lines.join("\n")
    }
}

#[test]
fn a_random_script_has_the_words_that_bash_finds_or_holes() {
    let mut writer = Writer(7);
    let asked = std::env::var("VMDISK_SCRIPTS").ok();
    let count: usize = asked.and_then(|it| it.parse().ok()).unwrap_or(400);
    let scripts: Vec<String> = (0..count).map(|_| writer.script()).collect();
    let Some(real) = real(&scripts) else { return };
    let mut known = 0;
    for (script, real) in scripts.iter().zip(real) {
        let found = evaluated(script);
        assert_eq!(found.len(), 1, "{script}");
        let commands = evaluate(script).commands;
        let last = &commands.last().unwrap().words;
        if !last.iter().any(Text::has_hole) {
            known += 1;
            assert_eq!(found, real, "{script}");
        }
    }
    println!("{known} of {count} scripts are known");
    assert!(known * 4 > count, "only {known} scripts are known");
}

/// A script, and the name of its last hole, with the reason and the possible values.
const HOLES: &[(&str, &str, &str, &str)] = &[
    ("qemu-system-x86_64 -a $X", "$X", UNSET, ""),
    (
        "select v in none unsafe; do break; done; qemu-system-x86_64 -a $v",
        "$v",
        "a loop sets it",
        "",
    ),
    (
        "A=a.raw; [[ $A =~ \\.([a-z]+)$ ]]; qemu-system-x86_64 -a ${BASH_REMATCH[1]}",
        "${BASH_REMATCH[1]}",
        "the shell sets it",
        "",
    ),
    (
        "qemu-system-x86_64 -hda <(pass show x)",
        "<(pass…)",
        "the shell names a pipe here",
        "",
    ),
    (
        "qemu-system-x86_64 -a $'\\xff'",
        "$'…'",
        "its bytes are not UTF-8",
        "",
    ),
    (
        "qemu-system-x86_64 -a ${1}",
        "${1}",
        "it is an argument of the script",
        "",
    ),
    (
        "qemu-system-x86_64 -a \"$(cat 'x y')\"",
        "$(cat…)",
        "it is the output of a command",
        "",
    ),
    (
        "A=1; [ -e x ] && A=2; qemu-system-x86_64 -a $A",
        "$A",
        "a branch sets it",
        "1 or 2",
    ),
    (
        "A=1; if x; then A=2; elif y; then A=3; fi; qemu-system-x86_64 -a $A",
        "$A",
        "a branch sets it",
        "1 or 2 or 3",
    ),
    (
        "O=-a; x && O=\"$O -b\"; qemu-system-x86_64 $O",
        "$O",
        "a branch sets it",
        " or -b",
    ),
    (
        "L=(-a); x && L+=(-b); qemu-system-x86_64 ${L[@]}",
        "$L",
        "a branch sets it",
        " or -b",
    ),
    (
        "[ -z \"$A\" ] && A=1; qemu-system-x86_64 -a $A",
        "$A",
        "a branch sets it",
        "",
    ),
    (
        "f() { x && { A=1; return; }; A=2; }; f; qemu-system-x86_64 -a $A",
        "$A",
        "a branch sets it",
        "1 or 2",
    ),
    (
        "f() { A=1; if x; then return; else exit; fi; }; f; qemu-system-x86_64 -a$A $B",
        "$B",
        "nothing in the file sets it",
        "",
    ),
    (
        "A=1; . ./conf; qemu-system-x86_64 -a $A",
        "$A",
        "`./conf`, which is not read, may set it",
        "",
    ),
    (
        "read A; qemu-system-x86_64 -a $A",
        "$A",
        "`read` sets it",
        "",
    ),
    (
        "for A in *.img; do qemu-system-x86_64 -a $A; done",
        "$A",
        "a loop sets it",
        "",
    ),
    (
        "for d in a b; do [ -e $d ] && break; A=$d; done; qemu-system-x86_64 -a $A",
        "$A",
        "a loop sets it",
        "",
    ),
    (
        "N=$((M + 1)); qemu-system-x86_64 -a $N",
        "$((M…)",
        "it is computed from an unknown value",
        "",
    ),
];

#[test]
fn a_hole_has_its_place_and_reason() {
    for (script, name, reason, values) in HOLES.iter().copied() {
        let evaluated = evaluate(script);
        let last = evaluated.commands.last().unwrap().words.last().unwrap();
        assert_eq!(last.as_str(), name, "{script}");
        let hole = evaluated.holes.iter().rev().find(|hole| hole.name == name);
        let hole = hole.unwrap_or_else(|| panic!("{script}: {:?}", evaluated.holes));
        assert_eq!(
            (&*hole.reason, &*hole.values.join(" or ")),
            (reason, values),
            "{script}"
        );
        assert!(!hole.span.is_empty(), "{script}");
    }
}

#[test]
fn text_that_grows_without_end_is_refused() {
    let doubled = "A=\"$A $A\"\n".repeat(60);
    let bomb = format!("A=x\n{doubled}qemu-system-x86_64 $A");
    for script in [
        bomb.as_str(),
        "for ((i = 0; 1; i++)); do A=$i; done; qemu-system-x86_64 -a",
        "A=x; while :; do A=\"$A $A\"; done; qemu-system-x86_64 -a",
        "f() { f; f; }; f; qemu-system-x86_64 -a",
        "A=1; eval 'eval \"$A\"'; A='eval \"$A\"'; eval \"$A\"; qemu-system-x86_64 -a",
    ] {
        // It ends.
        let _ = try_evaluate(script);
    }
    assert!(try_evaluate(&bomb).is_err());
    let long = "O=\"$O -drive file=/a,format=raw\"\n".repeat(14_000);
    let script = format!("O=\n{long}qemu-system-x86_64 $O");
    assert_eq!(evaluated(&script)[0].len(), 28_001);
}
