package main

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/compiler/plan"
)

// The columns of a picture, in pixels.
const (
	arcsLeft    = 24
	arcsWidth   = 84
	namesLeft   = arcsLeft + arcsWidth + 12
	namesWidth  = 330
	barsLeft    = namesLeft + namesWidth + 20
	barsWidth   = 150
	memoryLeft  = barsLeft + barsWidth + 30
	memoryWidth = 420
	pageWidth   = memoryLeft + memoryWidth + 24
	headHeight  = 104
)

// maxLabelled is the greatest number of stages that have rows high enough for text.
const maxLabelled = 400

// drawEntry returns a picture of an entry in SVG. A row is a stage, from the first at the top to the
// last. The columns are arcs from the stage that writes a value to those that read it, the kernel with
// its grid, the bytes that it reads and writes, and the memory of values between kernels by address.
func drawEntry(p *plan.Plan, e *plan.Entry, stages []stage) []byte {
	d := &drawing{plan: p, stages: stages, values: valuesOf(p, e, stages), row: 24}
	if len(stages) > maxLabelled {
		d.row = max(2, maxLabelled*24/float64(len(stages)))
	}
	d.begin(e)
	d.arcs()
	d.names()
	d.bars()
	d.memory()
	d.printf("</svg>\n")
	return []byte(d.sb.String())
}

type drawing struct {
	sb     strings.Builder
	plan   *plan.Plan
	stages []stage
	values []value
	row    float64 // height of a row
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.sb, format, args...) }

// top returns the upper edge of a row.
func (d *drawing) top(stage int) float64 { return headHeight + d.row*float64(stage) }

func (d *drawing) labelled() bool { return d.row >= 12 }

const style = `<style>
svg { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; background: #fff; --ink: #1c2430; --soft: #66707f; --line: #e4e8ee; --band: #f6f8fa; }
@media (prefers-color-scheme: dark) { svg { background: #12161c; --ink: #e8ecf2; --soft: #96a0af; --line: #2a313b; --band: #181d25; } }
text { fill: var(--ink); } .soft { fill: var(--soft); } .head { font-size: 18px; font-weight: 600; } .mono { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 11px; }
.band { fill: var(--band); } .line { stroke: var(--line); } .arc { fill: none; stroke-width: 1.4; opacity: .75; }
.value { stroke: #fff; stroke-opacity: .55; stroke-width: .7; } .read { opacity: .45; }
</style>
`

// begin writes the heading and the background bands of the rows.
func (d *drawing) begin(e *plan.Entry) {
	height := d.top(len(d.stages)) + 24
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f">`+"\n"+style, pageWidth, height, pageWidth, height)
	live := liveBytes(d.values, len(d.stages))
	peak := 0
	if len(live) > 0 {
		peak = slices.Max(live)
	}
	d.text(arcsLeft, 34, "head", fmt.Sprintf("%s · %s", d.plan.Name, e.Name))
	d.text(arcsLeft, 56, "soft", fmt.Sprintf("%s for %s, values between kernels at most %s", plural(e.Dispatches(), "launch", "launches"), d.plan.Target, bytesText(int64(peak))))
	for _, c := range []struct {
		at   int
		text string
	}{{arcsLeft, "values"}, {namesLeft, "kernel, workgroups"}, {barsLeft, "bytes read and written"}, {memoryLeft, "memory, by address"}} {
		d.text(float64(c.at), headHeight-12, "soft", c.text)
	}
	for i := 0; i < len(d.stages); i += 2 {
		d.printf(`<rect class="band" x="0" y="%.1f" width="%d" height="%.1f"/>`+"\n", d.top(i), pageWidth, d.row)
	}
	d.printf(`<path class="line" d="M0 %d H%d"/>`+"\n", headHeight, pageWidth)
}

func (d *drawing) text(x, y float64, class, text string) {
	d.printf(`<text x="%.1f" y="%.1f" class="%s">%s</text>`+"\n", x, y, class, html.EscapeString(text))
}

// colour returns the colour of a kernel: equal kernels have equal ones.
func colour(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	hue := math.Mod(float64(h.Sum32())*0.61803398875, 1) * 360
	return fmt.Sprintf("hsl(%.0f 58%% 52%%)", hue)
}

// arcs joins the stage that writes a value with each that reads it.
func (d *drawing) arcs() {
	type pair struct{ from, to int }
	seen := map[pair]bool{}
	for to := range d.stages {
		for _, w := range d.stages[to].reads {
			from := d.writer(w, to)
			if from < 0 || seen[pair{from, to}] {
				continue
			}
			seen[pair{from, to}] = true
			reach := math.Min(arcsWidth, 14+10*math.Sqrt(float64(to-from)))
			right := float64(arcsLeft + arcsWidth)
			d.printf(`<path class="arc" stroke="%s" d="M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f"/>`+"\n", colour(d.stages[from].name),
				right, d.top(from)+0.62*d.row, right-reach, d.top(from)+0.62*d.row, right-reach, d.top(to)+0.38*d.row, right, d.top(to)+0.38*d.row)
		}
	}
}

// writer returns the last stage before another one that wrote to a window, -1 for none.
func (d *drawing) writer(w window, before int) int {
	for i := before - 1; i >= 0; i-- {
		if slices.ContainsFunc(d.stages[i].writes, w.overlaps) {
			return i
		}
	}
	return -1
}

// names writes the kernels.
func (d *drawing) names() {
	for i := range d.stages {
		s := &d.stages[i]
		indent := 12 * float64(len(s.repeats))
		d.printf(`<rect x="%.1f" y="%.1f" width="4" height="%.1f" rx="1.5" fill="%s"><title>%s</title></rect>`+"\n",
			namesLeft+indent, d.top(i)+0.15*d.row, 0.7*d.row, colour(s.name), html.EscapeString(fmt.Sprintf("#%d %s %s", i, s.name, s.grid())))
		if !d.labelled() {
			continue
		}
		label := s.name
		if s.times > 1 {
			label = fmt.Sprintf("%s  × %d", label, s.times)
		}
		const letters = 34
		if len(label) > letters {
			label = label[:letters-1] + "…"
		}
		d.text(namesLeft+indent+12, d.top(i)+0.66*d.row, "mono", label)
		d.printf(`<text x="%d" y="%.1f" class="soft" text-anchor="end">%s</text>`+"\n", namesLeft+namesWidth, d.top(i)+0.66*d.row, html.EscapeString(cmp.Or(s.grid(), s.name)))
	}
}

// bars draws the bytes that stages read, pale, and write.
func (d *drawing) bars() {
	most := 1
	for i := range d.stages {
		read, written := d.stages[i].bytes()
		most = max(most, read+written)
	}
	for i := range d.stages {
		read, written := d.stages[i].bytes()
		scale := barsWidth / float64(most)
		title := html.EscapeString(fmt.Sprintf("reads %s, writes %s", bytesText(int64(read)), bytesText(int64(written))))
		bar := func(class string, from, bytes int) {
			d.printf(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s</title></rect>`+"\n",
				class, barsLeft+scale*float64(from), d.top(i)+0.25*d.row, math.Max(0.5, scale*float64(bytes)), 0.5*d.row, colour(d.stages[i].name), title)
		}
		bar("read", 0, read)
		bar("written", read, written)
	}
}

// memory draws each value over the rows in which it lives, at its address. The buffers for values
// are drawn side by side.
func (d *drawing) memory() {
	starts, total := make([]int, len(d.plan.Buffers)), 0
	for i, b := range d.plan.Buffers {
		if starts[i] = total; b.Kind == plan.TempBuffer && slices.ContainsFunc(d.values, func(v value) bool { return v.buffer == i }) {
			total += b.Bytes
		}
	}
	scale := memoryWidth / math.Max(1, float64(total))
	for _, v := range d.values {
		name := d.stages[v.first].name
		d.printf(`<rect class="value" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" fill="%s"><title>%s</title></rect>`+"\n",
			memoryLeft+scale*float64(starts[v.buffer]+v.from), d.top(v.first)+1, math.Max(1, scale*float64(v.to-v.from)), d.row*float64(v.last-v.first+1)-2, colour(name),
			html.EscapeString(fmt.Sprintf("%s of %s, from #%d to #%d", bytesText(int64(v.to-v.from)), name, v.first, v.last)))
	}
}
