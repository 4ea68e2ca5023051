package ir_test

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// texts returns graphs of each op, from its first samples, and some random ones.
func texts(f testing.TB, random uint64) []string {
	var out []string
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		for i, s := range d.Samples() {
			g, _, err := irtest.SampleGraph(op, s)
			if err != nil {
				f.Fatal(err)
			}
			if i < 2 {
				out = append(out, g.String())
			}
		}
	}
	for seed := range random {
		g, _ := irtest.RandomGraph(rand.New(rand.NewPCG(seed, 3)), 8)
		out = append(out, g.String())
	}
	return out
}

// For any text, Parse returns an error or a graph that is well formed and
// that its own text gives again.
func FuzzParse(f *testing.F) {
	for _, s := range texts(f, 20) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ir.Parse(text)
		if err != nil {
			return
		}
		if err := ir.Verify(g); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		printed := g.String()
		again, err := ir.Parse(printed)
		if err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		if s := again.String(); s != printed {
			t.Fatalf("printed as\n%s\nthen as\n%s", printed, s)
		}
		if again.Hash() != g.Hash() {
			t.Fatalf("another hash for\n%s", printed)
		}
	})
}

// Shape rules see attributes that no constructor would make: they give errors,
// and neither panic nor take long.
func TestParseSurvivesExtremeNumbers(t *testing.T) {
	numbers := regexp.MustCompile(`-?\b[0-9]+\b`)
	extremes := []string{"0", "-1", "1", "2", "2147483648", "9007199254740992", "9223372036854775807", "-9223372036854775808"}
	for _, text := range texts(t, 0) {
		for _, at := range numbers.FindAllStringIndex(text, -1) {
			if text[at[0]-1] == '%' {
				continue
			}
			for _, x := range extremes {
				mutant := text[:at[0]] + x + text[at[1]:]
				func() {
					defer func() {
						if r := recover(); r != nil {
							t.Errorf("panic: %v\n%s", r, mutant)
						}
					}()
					if g, err := ir.Parse(mutant); err == nil {
						if err := ir.Verify(g); err != nil {
							t.Errorf("%v\n%s", err, mutant)
						}
					}
				}()
			}
		}
	}
}
