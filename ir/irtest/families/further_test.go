package families

import "testing"

// TestFurtherAreGraphs keeps the models valid between runs of the benchmarks.
func TestFurtherAreGraphs(t *testing.T) {
	for _, f := range Further {
		if _, _, err := f.Step(1); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}
