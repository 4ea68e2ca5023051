package special

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write js/src/functions/series.gen.ts")

// series are the tables that the functions of TypeScript use, too.
var series = []struct {
	name  string
	terms []float64
}{
	{"erfcxSeries", erfcxSeries},
	{"einSeries", einSeries},
	{"e1Series", e1Series},
	{"eiSeries", eiSeries},
	{"eiMiddle", eiMiddle},
	{"eiFar", eiFar},
	{"eiFarthest", eiFarthest},
	{"j0Near", j0Near},
	{"j1Near", j1Near},
	{"p0Far", p0Far},
	{"q0Far", q0Far},
	{"p1Far", p1Far},
	{"q1Far", q1Far},
	{"stirlingSeries", stirlingSeries},
	{"stirlingSlopes", stirlingSlopes},
	{"evenBernoulli", evenBernoulli},
}

func TestTypeScriptHasTheSeries(t *testing.T) {
	var text strings.Builder
	text.WriteString("// Generated from the Go package ir/special by its tests with -update. Do not edit.\n")
	for _, s := range series {
		fmt.Fprintf(&text, "\nexport const %s: readonly number[] = [", s.name)
		for i, x := range s.terms {
			between := " "
			if i%5 == 0 {
				between = "\n  "
			}
			text.WriteString(between + strconv.FormatFloat(x, 'g', -1, 64) + ",")
		}
		text.WriteString("\n];\n")
	}
	const file = "../../js/src/functions/series.gen.ts"
	if *update {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != text.String() {
		t.Errorf("%s differs from the tables (%v): go test ./ir/special -update", file, err)
	}
}
