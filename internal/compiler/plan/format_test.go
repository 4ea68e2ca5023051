package plan_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"hash/crc32"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plantest"
	"github.com/rlx-go/rlx/ir/loop"
)

var update = flag.Bool("update", false, "write the cases that are shared with js, and the golden files that are not there")

// goldens are files written by earlier versions, and their contents. They never change: released
// files stay readable.
var goldens = map[string]*plan.Plan{
	"testdata/linear_v1_0.rlxp":  plantest.Linear(),
	"testdata/drafted_v1_3.rlxp": plantest.Drafted(),
}

func encoded(t testing.TB, p *plan.Plan) []byte {
	t.Helper()
	b, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readBack encodes a plan, decodes it, and returns the file.
func readBack(t *testing.T, p *plan.Plan) []byte {
	t.Helper()
	b := encoded(t, p)
	q, err := plan.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(p, q) {
		t.Errorf("decoded\n%+v\nwant\n%+v", q, p)
	}
	if !bytes.Equal(b, encoded(t, q)) {
		t.Error("the same plan gave other bytes")
	}
	return b
}

// seal rewrites the header for changed bytes.
func seal(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
	return b
}

func section(tag string, flags uint32, payload []byte) []byte {
	b := append([]byte(tag), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b[4:], flags)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(payload)))
	return append(b, append(payload, make([]byte, -len(payload)&3)...)...)
}

func TestDecodeInvertsEncode(t *testing.T) {
	p := plantest.Linear()
	p.Requires.Features = []string{"shader-f16", "subgroups"}
	p.Requires.Subgroup = [2]int{4, 32}
	p.Entries[entryStep].Reads, p.Entries[entryStep].Sets = []int{slotOf(p, "w")}, []int{slotOf(p, "w")}
	p.Variants = []*plan.Plan{plantest.Drafted()}
	readBack(t, p)
}

func TestDraftsOfMissingKernels(t *testing.T) {
	b := encoded(t, plantest.Drafted())
	at := after(b, "DRFT", 20)
	for _, kernel := range []uint32{7, 1<<32 - 1} {
		put(b, at, kernel)
		var format *plan.FormatError
		if _, err := plan.Decode(seal(b)); !errors.As(err, &format) || format.Rule != 44 && format.Rule != 4 {
			t.Errorf("a draft of kernel %d: %v", kernel, err)
		}
	}
}

func TestGoldenFilesAreReadAndWrittenTheSame(t *testing.T) {
	for file, want := range goldens {
		if _, err := os.Stat(file); *update && errors.Is(err, os.ErrNotExist) {
			if err := os.WriteFile(file, encoded(t, want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p, want) {
			t.Errorf("%s holds another plan than package plantest makes", file)
		}
		if again := encoded(t, want); !bytes.Equal(b[16:], again[16:]) {
			t.Errorf("Encode writes what %s has differently now", file)
		}
	}
}

func TestEveryTruncationIsDamage(t *testing.T) {
	b := encoded(t, plantest.Linear())
	for n := range b {
		if _, err := plan.Decode(b[:n:n]); !errors.Is(err, plan.ErrDamaged) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	// Cut sections and records under a right header, so that their own checks are
	// met. Only the last section, STAT, can be done without.
	status := bytes.LastIndex(b, []byte("STAT"))
	for n := 16; n < len(b); n++ {
		if n == status {
			continue
		}
		var format *plan.FormatError
		if _, err := plan.Decode(seal(bytes.Clone(b[:n]))); !errors.As(err, &format) {
			t.Fatalf("the first %d bytes, sealed: %v", n, err)
		}
	}
}

func TestEveryChangedByteIsAnError(t *testing.T) {
	b := encoded(t, plantest.Linear())
	for i := range b {
		if 6 <= i && i < 8 { // the minor version: another one is fine
			continue
		}
		for _, mask := range []byte{0x01, 0x80, 0xff} {
			b[i] ^= mask
			var format *plan.FormatError
			if _, err := plan.Decode(b); !errors.As(err, &format) {
				t.Fatalf("byte %d changed: %v", i, err)
			}
			b[i] ^= mask
		}
	}
}

func TestVersions(t *testing.T) {
	base := encoded(t, plantest.Linear())
	with := func(change func(b []byte) []byte) []byte { return seal(change(bytes.Clone(base))) }
	for _, c := range []struct {
		name string
		file []byte
		kind error
		text string
	}{
		{"a later minor version", with(func(b []byte) []byte { b[6] = 9; return b }), nil, ""},
		{"another major version", with(func(b []byte) []byte { b[4] = 2; return b }), plan.ErrVersion, "major version 2"},
		{"an unknown optional section", append(bytes.Clone(base), section("FUTR", 0, []byte("abc"))...), nil, ""},
		{"an unknown required section", append(bytes.Clone(base), section("FUTR", 1, nil)...), plan.ErrVersion, `"FUTR"`},
		{"a section twice", append(bytes.Clone(base), section("BUFS", 1, make([]byte, 4))...), plan.ErrDamaged, "twice"},
		{"a damaged variant", append(bytes.Clone(base), section("VARI", 0, []byte("RLXP"))...), plan.ErrDamaged, "header"},
		{"bytes too many in a section", with(lengthenMeta), plan.ErrDamaged, "too many"},
		{"bytes added by a later minor version", with(func(b []byte) []byte { b[6] = 9; return lengthenMeta(b) }), nil, ""},
		{"another kind of file", []byte("PK\x03\x04 and so on, and on"), plan.ErrDamaged, "not a plan"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := plan.Decode(seal(c.file))
			if !errors.Is(err, c.kind) || (err != nil && !strings.Contains(err.Error(), c.text)) {
				t.Errorf("got error %v, want one of kind %v with %q", err, c.kind, c.text)
			}
		})
	}
}

// lengthenMeta adds four bytes to the first section, META.
func lengthenMeta(b []byte) []byte {
	n := binary.LittleEndian.Uint32(b[24:])
	binary.LittleEndian.PutUint32(b[24:], n+4)
	at := 28 + n
	return append(append(bytes.Clone(b[:at]), 1, 2, 3, 4), b[at:]...)
}

func TestMissingSectionIsNamed(t *testing.T) {
	b := encoded(t, plantest.Linear())
	at := bytes.Index(b, []byte("KRNL"))
	b[at] = 'X' // now an unknown section
	b[at+4] = 0 // and optional
	if _, err := plan.Decode(seal(b)); !errors.Is(err, plan.ErrDamaged) || !strings.Contains(err.Error(), "KRNL") {
		t.Errorf("got %v, want damage that names KRNL", err)
	}
}

func TestRequirementsAreMet(t *testing.T) {
	def := loop.DefaultLimits()
	big := def
	big.StorageBuffers = 10
	for _, c := range []struct {
		name     string
		req      plan.Requires
		features []string
		limits   loop.Limits
		subgroup [2]int
		want     bool
	}{
		{"defaults", plan.Requires{Limits: def}, nil, def, [2]int{}, true},
		{"feature there", plan.Requires{Limits: def, Features: []string{"f"}}, []string{"e", "f"}, def, [2]int{}, true},
		{"feature missing", plan.Requires{Limits: def, Features: []string{"f"}}, nil, def, [2]int{}, false},
		{"limit too low", plan.Requires{Limits: big}, nil, def, [2]int{}, false},
		{"limit higher", plan.Requires{Limits: def}, nil, big, [2]int{}, true},
		{"subgroups inside", plan.Requires{Limits: def, Subgroup: [2]int{8, 64}}, nil, def, [2]int{8, 32}, true},
		{"subgroups smaller", plan.Requires{Limits: def, Subgroup: [2]int{8, 64}}, nil, def, [2]int{4, 32}, false},
		{"subgroups larger", plan.Requires{Limits: def, Subgroup: [2]int{8, 32}}, nil, def, [2]int{8, 64}, false},
		{"subgroups unknown", plan.Requires{Limits: def, Subgroup: [2]int{4, 128}}, nil, def, [2]int{}, false},
	} {
		if got := c.req.Met(c.features, c.limits, c.subgroup); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// FuzzDecode passes the decoder files with a correct header, to reach the code behind the checksum.
// Every accepted file must encode and decode to the same plan.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(encoded(f, plantest.Linear())[16:])
	f.Fuzz(func(t *testing.T, body []byte) {
		head := []byte("RLXP\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
		p, err := plan.Decode(seal(append(head, body...)))
		if err != nil {
			var format *plan.FormatError
			if !errors.As(err, &format) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		q, err := plan.Decode(encoded(t, p))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encoded(t, p), encoded(t, q)) {
			t.Fatal("a decoded plan changes when it is written and read")
		}
	})
}
