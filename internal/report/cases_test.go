package report_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/recipe"
	"github.com/rlx-go/rlx/internal/report"
	"github.com/rlx-go/rlx/ir"
)

// TestTargetsComputeWhatTypeScriptSays reads ir/irtest/cases/devices.json, as the tests of TypeScript do.
func TestTargetsComputeWhatTypeScriptSays(t *testing.T) {
	data, err := os.ReadFile("../../ir/irtest/cases/devices.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Graphs []struct {
			Name    string
			Graph   []string
			Targets map[string][][]string
		}
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.Graphs) == 0 {
		t.Fatal(err)
	}
	levels := map[string]report.Level{"native": report.Native, "claimed": report.Claimed, "decomposed": report.Decomposed, "unsupported": report.Unsupported}
	for _, c := range file.Graphs {
		g, err := ir.Parse("graph \"main\" {\n  " + strings.Join(c.Graph, "\n  ") + "\n}\n")
		if err == nil {
			g, err = g.Bind(map[string]int{"batch": 16})
		}
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		m := &ir.Module{Name: "m", Entries: []ir.Entry{{Name: "main", Graph: g}}}
		for name, want := range c.Targets {
			d, err := recipe.Limits{}.Target(name)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := report.Of(m, report.Device{
				Support: func(n *ir.Node) report.Support { return report.OnTarget(n, d.Target, name) },
				Check:   func(m *ir.Module) error { _, err := recipe.Compile(m, []recipe.Device{d}); return err },
			})
			if err != nil || len(rows) != len(want) {
				t.Errorf("%s on %s: %v, %v", c.Name, name, rows, err)
				continue
			}
			for i, r := range rows {
				words := append(want[i], "")[2]
				if string(r.Node.Op()) != want[i][0] || r.Level != levels[want[i][1]] || !strings.Contains(r.Reason, words) || (r.Reason == "") != (r.Level != report.Unsupported) {
					t.Errorf("%s on %s: row %d is %+v, not %v", c.Name, name, i, r, want[i])
				}
			}
		}
	}
}
