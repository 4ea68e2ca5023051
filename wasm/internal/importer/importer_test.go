package importer_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rlx-go/rlx/wasm/internal/importer"
	"github.com/rlx-go/rlx/wasm/internal/wire"
	"github.com/rlx-go/rlx/wasm/internal/wiretest"
)

// text and number append fields of a message.
func text(m []byte, field protowire.Number, data string) []byte {
	return protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), data)
}

func number(m []byte, field protowire.Number, x uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), x)
}

// modelAt is y = x·w of x [n, 2], with a weight at a place: offset, length and file.
func modelAt(file, offset, length string) string {
	w := text(number(number(nil, 1, 2), 2, 1), 8, "w")
	for _, e := range [][2]string{{"location", file}, {"offset", offset}, {"length", length}} {
		w = text(w, 13, string(text(text(nil, 1, e[0]), 2, e[1])))
	}
	w = number(w, 14, 1)
	node := text(text(text(text(nil, 1, "x"), 1, "w"), 2, "y"), 4, "Mul")
	info := func(name string) string {
		shape := text(text(nil, 1, string(text(nil, 2, "n"))), 1, string(number(nil, 1, 2)))
		return string(text(text(nil, 1, name), 2, string(text(nil, 1, string(text(number(nil, 1, 1), 2, string(shape)))))))
	}
	graph := text(text(text(text(nil, 1, string(node)), 5, string(w)), 11, info("x")), 12, info("y"))
	return string(text(text(nil, 8, string(number(nil, 2, 17))), 7, string(graph)))
}

// noOptions are the options of an import that sets none.
func noOptions() []any {
	return []any{wiretest.Of[int](), wiretest.Of[int](), wiretest.Of[int](), 0, 0, 0, 0, 0}
}

// place reads a place.
func place(r *wire.Request) (string, float64, float64) { return r.Text(), r.F64(), r.F64() }

// TestImporter imports a model whose weight is in a file: the importer asks for its size, and for no element.
func TestImporter(t *testing.T) {
	s := importer.New()
	r := wiretest.Must(t, s, "open", []byte(modelAt("w.bin", "4", "8")), 100.0)
	m := r.U32()
	if n, name, element, dtype, shaped, sizes := r.U32(), r.Text(), r.Text(), r.Text(), r.Bool(), r.Texts(); n != 1 || name != "x" || element != "float" || dtype != "f32" || !shaped || strings.Join(sizes, " ") != "n 2" {
		t.Fatalf("the inputs are %d, %s %s %s %v", n, name, element, dtype, sizes)
	}
	r = wiretest.Must(t, s, "import", append([]any{m}, noOptions()...)...)
	if answer, n := r.U32(), r.U32(); answer != 0 || n != 1 {
		t.Fatalf("answer %d with %d places", answer, n)
	}
	if file, offset, length := place(r); file != "w.bin" || offset != 0 || length != 0 {
		t.Fatalf("it needs %s from %v, %v bytes", file, offset, length)
	}
	wiretest.Must(t, s, "size", m, "w.bin", 12.0)
	r = wiretest.Must(t, s, "import", append([]any{m}, noOptions()...)...)
	answer, handle, graph, n, name, dtype, sizes := r.U32(), r.U32(), r.Text(), r.U32(), r.Text(), r.Text(), r.Texts()
	if answer != 1 || !strings.Contains(graph, "param") || n != 1 || name != "w" || dtype != "f32" || strings.Join(sizes, " ") != "2" {
		t.Fatalf("answer %d: %d weights, %s %s %v of\n%s", answer, n, name, dtype, sizes, graph)
	}
	if file, offset, length := place(r); file != "w.bin" || offset != 4 || length != 8 {
		t.Errorf("the weight is in %s from %v, %v bytes", file, offset, length)
	}
	r = wiretest.Must(t, s, "weight", handle, 0)
	if answer, n := r.U32(), r.U32(); answer != 0 || n != 1 {
		t.Fatalf("answer %d with %d places", answer, n)
	}
	file, offset, length := place(r)
	data := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, math.Float32bits(1)), math.Float32bits(2))
	if int(length) != len(data) {
		t.Fatalf("it needs %v bytes", length)
	}
	wiretest.Must(t, s, "give", m, file, offset, data)
	if r = wiretest.Must(t, s, "weight", handle, 0); r.U32() != 1 || !bytes.Equal(r.Bytes(), data) {
		t.Error("the weight has other bytes")
	}
}

// TestImporterRefuses checks the kinds of the errors that a host branches on.
func TestImporterRefuses(t *testing.T) {
	s := importer.New()
	open := func(model string) int { return wiretest.Must(t, s, "open", []byte(model), 8.0).U32() }
	for name, c := range map[string]struct {
		method, kind, says string
		args               []any
	}{
		"no model":        {"open", "syntax", "no graph", []any{[]byte{}, 0.0}},
		"a path outside":  {"import", "syntax", "leaves the model's folder", append([]any{open(modelAt("../w", "0", "8"))}, noOptions()...)},
		"a short file":    {"import", "syntax", "no file of that size", append([]any{open(modelAt(".", "4", "8"))}, noOptions()...)},
		"another length":  {"import", "syntax", "needs 8", append([]any{open(modelAt(".", "0", "4"))}, noOptions()...)},
		"no import":       {"weight", "name", "handle 99", []any{99, 0}},
		"a short request": {"import", "syntax", "short", []any{open(modelAt(".", "0", "8"))}},
	} {
		_, err := wiretest.Call(s, c.method, c.args...)
		if err == nil || err.Kind != c.kind || !strings.Contains(err.Message, c.says) {
			t.Errorf("%s: %+v, want kind %s and %q", name, err, c.kind, c.says)
		}
	}
	unknown := strings.Replace(modelAt(".", "0", "8"), "Mul", "Nop", 1)
	if _, err := wiretest.Call(s, "import", append([]any{open(unknown)}, noOptions()...)...); err == nil || err.Kind != "unsupported" || err.Op != "Nop" {
		t.Errorf("an unknown op: %+v", err)
	}
}
