package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

const before = `package a

type def struct {
	doc         string
	constraints []string
}

func define(op, doc string, constraints []string) def { return def{doc, constraints} }

func refuse(text string) string { return text }

var (
	one = def{doc: "The sum of " +
		refuse("a") + ".", constraints: []string{"x is a float", ` + "`y`" + `}}
	two   = define("two", "The product.", []string{"x is 2"})
	error = refuse("x is 2")
)

func init() { two.constraints = []string{"none"} }
`

const after = `package a

type def struct {
	doc         string
	constraints []string
}

func define(op, doc string, constraints []string) def { return def{doc, constraints} }

func refuse(text string) string { return text }

var (
	one = def{doc: "" +
		refuse("") + "", constraints: []string{"", ""}}
	two   = define("two", "", []string{""})
	error = refuse("x is 2")
)

func init() { two.constraints = []string{""} }
`

func TestDocumentationIsEmpty(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "_to")
	for name, text := range map[string]string{"a.go": before, "a_test.go": before} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := write(to, from); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(to, "overlay.json"))
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(data, &overlay); err != nil {
		t.Fatal(err)
	}
	if len(overlay.Replace) != 1 {
		t.Errorf("it replaces %v, and not a.go alone", overlay.Replace)
	}
	got, err := os.ReadFile(overlay.Replace[filepath.Join(from, "a.go")])
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != after {
		t.Errorf("%s", got)
	}
}

func TestAFolderWithoutSourcesIsAnError(t *testing.T) {
	if err := write(t.TempDir(), t.TempDir()); err == nil {
		t.Error("no error")
	}
}
