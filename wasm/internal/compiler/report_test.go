package compiler

import (
	"slices"
	"strings"
	"testing"

	. "github.com/rlx-go/rlx/wasm/internal/wiretest"
)

// reportOf returns the levels by op, the reasons, and the work of an entry.
func reportOf(h *host, graph, target, known int) (levels map[string]int, reasons []string, work []float64) {
	h.t.Helper()
	r := Must(h.t, h.Service, "report", "m", Entries(1, "run", graph), List{}, 0., 0., 0., 0., 0., 0, 0, "", Of(target), known)
	levels = map[string]int{}
	r.List(func() {
		_, _, op := r.Text(), r.Text(), r.Text()
		levels[op] = r.U32()
		if reason := r.Text(); reason != "" {
			reasons = append(reasons, reason)
		}
	})
	r.List(func() { work = append(work, r.F64(), r.F64(), r.F64(), r.F64()) })
	return levels, reasons, work
}

func TestReportNamesWhatATargetCannotCompute(t *testing.T) {
	h := begin(t, "softmax")
	g := h.build("y", h.op("softmax", h.port("input", "x", "f32", "4", "8")))
	levels, reasons, work := reportOf(h, g, 0, 0)
	if levels["softmax"] != 2 || len(reasons) > 0 || !slices.Equal(work[3:], []float64{2 * 4 * 4 * 8}) {
		t.Errorf("levels %v, reasons %v, work %v", levels, reasons, work)
	}
	h = begin(t, "wide")
	g = h.build("y", h.op("neg", h.port("input", "x", "f64", "4")))
	for known := range 2 {
		if levels, reasons, _ := reportOf(h, g, 0, known); levels["neg"] != 3 || !slices.Contains(reasons, "webgpu cannot hold f64") {
			t.Errorf("levels %v, reasons %v", levels, reasons)
		}
		if levels, _, _ := reportOf(h, g, 1, known); levels["neg"] != 0 {
			t.Errorf("WebAssembly has f64, and the report says %v", levels)
		}
	}
	h = begin(t, "large")
	g = h.build("y", h.op("neg", h.port("input", "x", "f32", "65536", "65536")))
	if levels, reasons, _ := reportOf(h, g, 0, 0); levels["neg"] != 3 || !strings.Contains(strings.Join(reasons, " "), "too many elements") {
		t.Errorf("a tensor that no kernel can index: levels %v, reasons %v", levels, reasons)
	}
}
