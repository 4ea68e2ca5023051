package report_test

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	_ "github.com/rlx-go/rlx/internal/ballast"
	"github.com/rlx-go/rlx/internal/report"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// lacking is a device without an op, whose compiler refuses modules with another.
func lacking(missing, refused ir.Op) report.Device {
	return report.Device{
		Support: func(n *ir.Node) report.Support {
			switch {
			case n.Op() == missing:
				return report.Support{Level: report.Unsupported, Reason: "no " + string(missing)}
			case n.Def().IsComposite():
				return report.Support{Level: report.Decomposed}
			}
			return report.Support{}
		},
		Check: func(m *ir.Module) error {
			for _, n := range m.Entries[0].Graph.Nodes() {
				if n.Op() == refused {
					return errors.New("refused")
				}
			}
			return nil
		},
	}
}

func TestRowsOfADevice(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(2, 3)...)
		b.Output("y", ops.Neg(b, ops.Softmax(b, x, 1)))
	})
	if err != nil {
		t.Fatal(err)
	}
	m := &ir.Module{Name: "m", Entries: []ir.Entry{{Name: "run", Graph: g}}}
	for _, c := range []struct {
		missing, refused ir.Op
		want             string // the unsupported nodes
		reason           string
	}{
		{"", "", "", ""},
		{"neg", "", "neg", "no neg"},
		{"exp", "", "softmax", "its decomposition has exp f32[2,3]: no exp"},
		{"", "neg", "neg", "refused"},
	} {
		d := lacking(c.missing, c.refused)
		rows, err := report.Of(m, d)
		if err != nil || len(rows) != 2 {
			t.Fatalf("%+v: %v, %v", c, rows, err)
		}
		var bad []string
		for _, r := range rows {
			if r.Level == report.Unsupported {
				bad = append(bad, string(r.Node.Op()))
				if r.Reason != c.reason || r.Entry != "run" {
					t.Errorf("%+v: %+v", c, r)
				}
			}
		}
		if got := strings.Join(bad, " "); got != c.want {
			t.Errorf("%+v: unsupported are %q", c, got)
		}
		if n, reason := report.First(g, d); c.refused == "" && (n != nil) != (c.want != "") || n != nil && reason != c.reason {
			t.Errorf("%+v: the first is %v: %s", c, n, reason)
		}
	}
	whole := lacking("", "")
	whole.Check = func(m *ir.Module) error {
		if m.Name == "m" { // the nodes alone have the names of their ops
			return errors.New("too much together")
		}
		return nil
	}
	asked := 0
	check := whole.Check
	counting := report.Device{Support: whole.Support, IsOfWhole: func(err error) bool { return err.Error() == "too much together" }}
	counting.Check = func(m *ir.Module) error { asked++; return check(m) }
	if rows, err := report.Of(m, counting); len(rows) != 2 || err == nil || asked != 1 {
		t.Errorf("a refusal of the whole: %v, %v, and the compiler is asked %d times", rows, err, asked)
	}
	if rows, err := report.Of(m, whole); len(rows) != 2 || rows[0].Level == report.Unsupported || err == nil || err.Error() != "too much together" {
		t.Errorf("a module that is refused as a whole: %v, %v", rows, err)
	}
}

func TestLevelsAreThoseOfDevices(t *testing.T) {
	for level, want := range map[report.Level]native.Level{
		report.Native: native.Native, report.Claimed: native.Claimed, report.Decomposed: native.Decomposed, report.Unsupported: native.Unsupported,
	} {
		if native.Level(level) != want {
			t.Errorf("level %d is %v, not %v", level, native.Level(level), want)
		}
	}
}

// The page's compiler has this package: fmt and the devices of Go would make it larger.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		if slices.Contains([]string{"fmt", "os"}, pkg) || strings.Contains(pkg, "rlx/native") {
			t.Errorf("package report imports %s", pkg)
		}
	}
}
