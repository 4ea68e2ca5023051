package rlx_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxMethods   = 40 // of a type
	maxSpread    = 29 // methods of a type that stands in many files
	manyFiles    = 6
	maxEmbedding = 2 // depth of embedded structs
)

// manyMethods are the types with more than maxMethods methods, and spreadTypes those with more than maxSpread in manyFiles
// files, each with the reason.
var (
	manyMethods = map[string]string{
		"ir.Builder":                   "what users write graphs with",
		"internal/codegen/asm.Encoder": "a method for each instruction",
		"ir/loop.checker":              "a rule for each statement and expression, over one scope",
	}
	spreadTypes = map[string]string{
		".Trainer":   "what users train with",
		"ir.Builder": "what users write graphs with",
	}
)

// systems is what ends the names of files for one system or processor: a build has one of them.
var systems = regexp.MustCompile(`_(amd64|arm64|other|linux|darwin|windows|unix|js|on|none)\.go$`)

// structs are the types of the module, by folder and name.
type structs struct {
	embeds  map[string][]string // what each struct embeds
	methods map[string]map[string]bool
	files   map[string]map[string]bool // that have the methods, those for several systems as one
}

// TestTypesAreOfModestSize holds the number of methods of each type, and the depth of embedding.
func TestTypesAreOfModestSize(t *testing.T) {
	all := structs{map[string][]string{}, map[string]map[string]bool{}, map[string]map[string]bool{}}
	eachGoFile(t, func(path string) error {
		if strings.HasSuffix(path, "_test.go") {
			return nil
		}
		return all.read(path)
	})
	for name, methods := range all.methods {
		n, files := len(methods), len(all.files[name])
		if n > maxMethods && manyMethods[name] == "" {
			t.Errorf("%s has %d methods, more than %d: which of them have state of their own?", name, n, maxMethods)
		}
		if spread := n > maxSpread && files >= manyFiles; spread != (spreadTypes[name] != "") {
			t.Errorf("%s has %d methods in %d files: more than %d in %d need an exception, others none", name, n, files, maxSpread, manyFiles)
		}
	}
	for name := range manyMethods {
		if n := len(all.methods[name]); n <= maxMethods {
			t.Errorf("%s has %d methods: it needs no exception", name, n)
		}
	}
	for name := range all.embeds {
		if chain := all.chain(name); len(chain) > maxEmbedding+1 {
			t.Errorf("structs are embedded %d deep: %s", len(chain)-1, strings.Join(chain, " > "))
		}
	}
}

// eachGoFile calls f with the path of each Go file of the module.
func eachGoFile(t *testing.T, f func(path string) error) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "build"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			return f(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// read adds the types of a file.
func (s *structs) read(path string) error {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	folder := filepath.ToSlash(filepath.Dir(path))
	imports := map[string]string{}
	for _, i := range f.Imports {
		if inside, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/"); ok {
			imports[inside[strings.LastIndexByte(inside, '/')+1:]] = inside
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				name := strings.TrimPrefix(folder, ".") + "." + typeName(d.Recv.List[0].Type)
				if s.methods[name] == nil {
					s.methods[name], s.files[name] = map[string]bool{}, map[string]bool{}
				}
				s.methods[name][d.Name.Name] = true
				s.files[name][systems.ReplaceAllString(path, "")] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				ts, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if st, ok := ts.Type.(*ast.StructType); ok {
					s.embeds[folder+"."+ts.Name.Name] = embedded(st, folder, imports)
				}
			}
		}
	}
	return nil
}

// embedded returns what a struct embeds; imports are folders by package name.
func embedded(st *ast.StructType, folder string, imports map[string]string) []string {
	var out []string
	for _, field := range st.Fields.List {
		if len(field.Names) > 0 {
			continue
		}
		home, name := folder, typeName(field.Type)
		if p, n, ok := strings.Cut(name, "."); ok {
			home, name = imports[p], n
		}
		out = append(out, home+"."+name)
	}
	return out
}

// typeName returns the name of a type without its pointer and parameters.
func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.IndexExpr:
		return typeName(t.X)
	case *ast.IndexListExpr:
		return typeName(t.X)
	case *ast.SelectorExpr:
		return typeName(t.X) + "." + t.Sel.Name
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// chain returns the longest chain of embedded structs, which begins with the named one. Types of
// other modules and interfaces embed nothing.
func (s *structs) chain(name string) []string {
	var longest []string
	for _, e := range s.embeds[name] {
		if _, isStruct := s.embeds[e]; !isStruct {
			continue
		}
		if c := s.chain(e); len(c) > len(longest) {
			longest = c
		}
	}
	return slices.Concat([]string{name}, longest)
}
