package plan_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plantest"
)

// sharedFile has the cases that this package and js/test/plan.test.mjs both run: plan
// files and their expected errors. `make golden` writes it.
const sharedFile = "testdata/cases.json"

// shared is the content of that file.
type shared struct {
	// Base is a plan file; the cases are changes of it.
	Base  []byte       `json:"base"`
	Cases []sharedCase `json:"cases"`
	// Mutants are verdicts on files that both sides make: see [mutant].
	Mutants mutants `json:"mutants"`
}

type sharedCase struct {
	What string `json:"what"`
	Rule int    `json:"rule"`           // 0: accepted
	Kind string `json:"kind,omitempty"` // damaged, version or invalid
	// Raw: the header is as it was; otherwise it gets the right length and sum.
	Raw   bool   `json:"raw,omitempty"`
	Edits []edit `json:"edits"`
}

// edit puts bytes in the place of others; At counts in the base.
type edit struct {
	At     int    `json:"at"`
	Remove int    `json:"remove,omitempty"`
	Insert []byte `json:"insert,omitempty"`
}

type mutants struct {
	// Sum is the CRC-32 of all mutants, one after the other.
	Sum uint32 `json:"sum"`
	// Verdicts has a letter for each mutant: its rule among [letters].
	Verdicts []string `json:"verdicts"`
}

// letters abbreviate the rules in verdicts.
const letters = ".123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// fileCases are changes of the bytes of a file, and the rules they break.
var fileCases = []struct {
	what   string
	rule   int
	raw    bool
	change func(b []byte) []byte
}{
	{"nothing", 1, true, func(b []byte) []byte { return nil }},
	{"half a magic number", 1, true, func(b []byte) []byte { return b[:2] }},
	{"half a header", 1, true, func(b []byte) []byte { return b[:12] }},
	{"another magic number", 1, true, func(b []byte) []byte { b[0] = 'X'; return b }},
	{"a file cut short", 1, true, func(b []byte) []byte { return b[:len(b)-4] }},
	{"another length", 1, true, func(b []byte) []byte { b[8]++; return b }},
	{"another checksum", 1, true, func(b []byte) []byte { b[12]++; return b }},
	{"another byte", 1, true, func(b []byte) []byte { b[len(b)-1]++; return b }},
	{"another major version", 2, false, func(b []byte) []byte { b[4]++; return b }},
	{"a later minor version", 0, false, func(b []byte) []byte { b[6]++; return b }},
	{"a section longer than the file", 3, false, func(b []byte) []byte { return put(b, after(b, "STAT", 8), 1<<20) }},
	{"a section of 4 GiB", 3, false, func(b []byte) []byte { return put(b, after(b, "SLOT", 8), 1<<32-1) }},
	{"a section cut in its padding", 3, false, func(b []byte) []byte { return append(b, "FUTR\x00\x00\x00\x00\x01\x00\x00\x00?"...) }},
	{"an unknown section of another length than the file has", 3, false, func(b []byte) []byte { return append(b, "FUTR\x01\x00\x00\x00\x04\x00\x00\x00"...) }},
	{"half a tag", 3, false, func(b []byte) []byte { return append(b, "FU"...) }},
	{"bytes too many in a section", 3, false, lengthenMeta},
	{"bytes that a later minor version adds", 0, false, func(b []byte) []byte { b[6]++; return lengthenMeta(b) }},
	{"a record longer than its section", 3, false, func(b []byte) []byte { return put(b, after(b, "BUFS", 16), 1<<20) }},
	{"a record too short for its fields", 3, false, func(b []byte) []byte { return put(b, after(b, "BUFS", 16), 8) }},
	{"bytes too many in a record", 3, false, func(b []byte) []byte { return put(b, after(b, "BUFS", 16), 16) }},
	{"a list longer than its section", 3, false, func(b []byte) []byte { return put(b, after(b, "SLOT", 12), 1<<32-1) }},
	{"a list of bindings that are not there", 3, false, func(b []byte) []byte { return put(b, after(b, "init", 48), 200) }},
	{"a string longer than its section", 3, false, func(b []byte) []byte { return put(b, after(b, "META", 12), 1<<20) }},
	{"a number over 2⁵³-1", 4, false, func(b []byte) []byte { return put(b, after(b, "BUFS", 28), 1<<21) }},
	{"a negative size", 4, false, func(b []byte) []byte { return put(b, after(b, "BUFS", 28), 1<<32-1) }},
	{"a bound under -2⁵³+1", 4, false, func(b []byte) []byte { return put(b, after(b, "label", 60), 1<<31) }},
	{"a string that is not UTF-8", 5, false, func(b []byte) []byte { return write(b, "rate", "\xff\xfe\xfd\xfc") }},
	{"half a pair of UTF-16 in UTF-8", 5, false, func(b []byte) []byte { return write(b, "rate", "\xed\xa0\x80!") }},
	{"a byte order mark", 0, false, func(b []byte) []byte { return write(b, "rate", "\ufeff!") }},
	{"a character in more bytes than it needs", 5, false, func(b []byte) []byte { return write(b, "rate", "\xc1\x81\xc1\x81") }},
	{"an unknown role", 6, false, func(b []byte) []byte { return put(b, after(b, "rate", 4), 5) }},
	{"an unknown element type", 6, false, func(b []byte) []byte { return write(b, "f32", "f31") }},
	{"a truth value of 2", 6, false, func(b []byte) []byte { return put(b, after(b, "label", 52), 2) }},
	{"an unknown section", 0, false, func(b []byte) []byte { return append(b, section("FUTR", 0, []byte("abc"))...) }},
	{"an unknown section twice", 0, false, func(b []byte) []byte {
		return append(append(b, section("FUTR", 0, nil)...), section("FUTR", 2, nil)...)
	}},
	{"an unknown required section", 8, false, func(b []byte) []byte { return append(b, section("FUTR", 1, nil)...) }},
	{"an unknown kind of step", 8, false, func(b []byte) []byte { return put(b, after(b, "fold", 36), 5) }},
	{"a section twice", 7, false, func(b []byte) []byte { return append(b, section("SYMS", 0, make([]byte, 4))...) }},
	{"a required section missing", 7, false, func(b []byte) []byte { b = write(b, "KRNL", "KRNX"); return put(b, after(b, "KRNX", 4), 0) }},
	{"an optional section missing", 0, false, func(b []byte) []byte { return b[:bytes.LastIndex(b, []byte("STAT"))] }},
	{"a damaged variant", 1, false, func(b []byte) []byte { return append(b, section("VARI", 0, []byte("RLXP"))...) }},
	{"a variant in a variant, for who knows of such", 0, false, nested(0)},
	{"a variant in a variant, for all", 8, false, nested(1)},
}

// nested puts into the file a variant that has a variant.
func nested(flags uint32) func(b []byte) []byte {
	return func(b []byte) []byte {
		empty := encodedAnyway(&plan.Plan{})
		inner := seal(append(bytes.Clone(empty), section("VARI", flags, empty)...))
		return append(b, section("VARI", 0, inner)...)
	}
}

// after returns the place n bytes after the beginning of a text.
func after(b []byte, text string, n int) int { return bytes.LastIndex(b, []byte(text)) + n }

func put(b []byte, at int, v uint32) []byte {
	binary.LittleEndian.PutUint32(b[at:], v)
	return b
}

// write replaces a text by another one, as long.
func write(b []byte, text, by string) []byte {
	copy(b[bytes.LastIndex(b, []byte(text)):], by)
	return b
}

func encodedAnyway(p *plan.Plan) []byte {
	b, err := plan.EncodeUnchecked(p)
	if err != nil {
		panic(err)
	}
	return b
}

// short is the plan of package plantest with sources of one letter, since their contents do not
// matter here.
func short() *plan.Plan {
	p := plantest.Linear()
	for i := range p.Kernels {
		p.Kernels[i].Source = "x"
	}
	return p
}

// narrow reports that an int has 32 bits: a reader then refuses numbers that it does not
// hold by rule 4, [numbersRule], before it checks them for other faults.
const (
	narrow      = strconv.IntSize == 32
	numbersRule = 4
)

// sharedCases returns a base and the changes of it that the tables of this
// package describe. Each case is checked on the way.
func sharedCases(t *testing.T) (base []byte, cases []sharedCase, seeds [][]byte) {
	base = encodedAnyway(short())
	add := func(what string, rule int, raw bool, file []byte) {
		kind, got := verdict(t, file)
		if got != rule && !(narrow && rule != 0 && got == numbersRule) {
			t.Errorf("%s: rule %d, want %d", what, got, rule)
		}
		c := sharedCase{what, got, kind, raw, edits(base, file)}
		if again := c.file(base); !bytes.Equal(again, file) {
			t.Fatalf("%s: the edits make another file", what)
		}
		cases = append(cases, c)
		if rule == 0 {
			seeds = append(seeds, file)
		}
	}
	for _, c := range slices.Concat(accepted, refused) {
		if c.memory {
			continue
		}
		p := short()
		c.change(p)
		add(c.what, c.rule, false, encodedAnyway(p))
	}
	for _, c := range fileCases {
		file := c.change(bytes.Clone(base))
		if !c.raw {
			file = seal(file)
		}
		add(c.what, c.rule, c.raw, file)
	}
	return base, cases, seeds
}

// verdict returns the error of Decode for a file: its kind and the
// number of its rule.
func verdict(t testing.TB, file []byte) (kind string, rule int) {
	_, err := plan.Decode(file)
	if err == nil {
		return "", 0
	}
	var format *plan.FormatError
	if !errors.As(err, &format) || format.Rule == 0 || !strings.HasSuffix(err.Error(), "(rule "+strconv.Itoa(format.Rule)+")") {
		t.Fatalf("an error without a rule: %v", err)
	}
	return map[error]string{plan.ErrDamaged: "damaged", plan.ErrVersion: "version", plan.ErrInvalid: "invalid"}[format.Kind], format.Rule
}

// edits returns the difference between two files: a changed version, and the bytes between their
// common prefix and suffix after the header.
func edits(from, to []byte) []edit {
	list := []edit{}
	const header = 16
	if len(to) < header || !bytes.Equal(from[:4], to[:4]) || !bytes.Equal(seal(bytes.Clone(to)), to) {
		return []edit{{0, len(from), to}}
	}
	if !bytes.Equal(from[4:8], to[4:8]) {
		list = append(list, edit{4, 4, to[4:8]})
	}
	begin, end := header, 0
	for begin < min(len(from), len(to)) && from[begin] == to[begin] {
		begin++
	}
	for end < min(len(from), len(to))-begin && from[len(from)-1-end] == to[len(to)-1-end] {
		end++
	}
	if begin+end < max(len(from), len(to)) {
		list = append(list, edit{begin, len(from) - end - begin, to[begin : len(to)-end]})
	}
	return list
}

// file applies the edits of a case.
func (c *sharedCase) file(base []byte) []byte {
	b := bytes.Clone(base)
	for _, e := range slices.Backward(c.Edits) {
		b = slices.Concat(b[:e.At], e.Insert, b[e.At+e.Remove:])
	}
	if c.Raw {
		return b
	}
	return seal(b)
}

// random is a generator of numbers that both sides have.
type random uint32

// below returns a number from 0 to n-1.
func (r *random) below(n int) int {
	*r = *r*1664525 + 1013904223
	return int(uint64(*r) * uint64(n) >> 32)
}

// mutant changes one to three words of a plan file; all fields are words.
func mutant(seed []byte, r *random) []byte {
	b := bytes.Clone(seed)
	place := func() int { return 16 + 4*r.below((len(b)-16)/4) }
	for range 1 + r.below(2)*r.below(3) {
		at := place()
		v := binary.LittleEndian.Uint32(b[at:])
		switch r.below(8) {
		case 0:
			put(b, at, uint32(r.below(9)))
		case 1:
			put(b, at, v+1)
		case 2:
			put(b, at, v-1)
		case 3:
			put(b, at, v*2)
		case 4:
			put(b, at, v^1<<r.below(32))
		case 5:
			put(b, at, uint32(256*r.below(17)))
		case 6:
			put(b, at, [...]uint32{1<<32 - 1, 1<<31 - 1, 1 << 31, 1 << 16}[r.below(4)])
		case 7:
			from := place()
			copy(b[at:], b[from:min(from+4*(1+r.below(12)), len(b))])
		}
	}
	return seal(b)
}

// mutantsOf returns the verdicts on 6,000 mutants of the seeds in turn.
func mutantsOf(t testing.TB, seeds [][]byte) (m mutants) {
	const lines, width = 100, 60
	r := random(1)
	for line := range lines {
		verdicts := make([]byte, width)
		for i := range verdicts {
			file := mutant(seeds[(line*width+i)%len(seeds)], &r)
			m.Sum = crc32.Update(m.Sum, crc32.IEEETable, file)
			_, rule := verdict(t, file)
			verdicts[i] = letters[rule]
		}
		m.Verdicts = append(m.Verdicts, string(verdicts))
	}
	return m
}

// TestSharedCases checks the file of shared cases: it must hold the cases in the tables of this
// package, and one for each rule of the package's comment.
func TestSharedCases(t *testing.T) {
	var now shared
	var seeds [][]byte
	now.Base, now.Cases, seeds = sharedCases(t)
	now.Mutants = mutantsOf(t, seeds)
	if all := strings.Join(now.Mutants.Verdicts, ""); strings.Count(all, ".") < 1000 {
		t.Errorf("%d mutants are accepted: they show little", strings.Count(all, "."))
	}
	checkRulesHaveCases(t, now.Cases)
	if *update && !t.Failed() {
		if err := os.WriteFile(sharedFile, now.text(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(sharedFile)
	if err != nil {
		t.Fatal(err)
	}
	if !narrow && !bytes.Equal(file, now.text(t)) {
		t.Errorf("%s holds other cases than the tables: run make golden, and look at the diff", sharedFile)
	}
}

// text returns JSON with a line for each case.
func (s *shared) text(t *testing.T) []byte {
	line := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	lines := func(n int, at func(i int) any) string {
		var list []string
		for i := range n {
			list = append(list, line(at(i)))
		}
		return "[\n" + strings.Join(list, ",\n") + "\n]"
	}
	cases := lines(len(s.Cases), func(i int) any { return s.Cases[i] })
	verdicts := lines(len(s.Mutants.Verdicts), func(i int) any { return s.Mutants.Verdicts[i] })
	return []byte("{\"base\": " + line(s.Base) + ",\n\"cases\": " + cases + ",\n\"mutants\": {\"sum\": " + line(s.Mutants.Sum) + ", \"verdicts\": " + verdicts + "}}\n")
}

// openRule is the first rule of files with open sizes, whose cases are in the tests of package sized.
const openRule = 46

// checkRulesHaveCases compares the cases, those of calls, of tensor maps and of code included, with the list in
// the comment of the package.
func checkRulesHaveCases(t *testing.T, cases []sharedCase) {
	comment, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	rules := regexp.MustCompile(`(?m)^//  (\d+)\. `).FindAllSubmatch(comment, -1)
	if len(rules) >= len(letters) || len(rules) == 0 {
		t.Fatalf("%d rules and %d letters", len(rules), len(letters))
	}
	for i, rule := range rules {
		if got := string(rule[1]); got != strconv.Itoa(i+1) {
			t.Errorf("rule %d is called %s", i+1, got)
		}
		shared := slices.ContainsFunc(cases, func(c sharedCase) bool { return c.Rule == i+1 })
		if i+1 < openRule && !shared && !slices.ContainsFunc(slices.Concat(callCases, tensorMapCases, codeCases), func(c planCase) bool { return c.rule == i+1 }) {
			t.Errorf("no case breaks rule %d", i+1)
		}
	}
}
