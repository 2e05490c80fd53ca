package main

import (
	"bytes"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

const module = "google.golang.org/grpc"

// reader reads the declarations of one package.
type reader struct {
	root    string
	set     *token.FileSet
	symbols map[string]string
	types   map[string]bool // exported types, of which methods count
}

// read has the exported symbols of a package, with the text of their types.
func read(root, name string) (map[string]string, error) {
	r := &reader{root, token.NewFileSet(), map[string]string{}, map[string]bool{}}
	files, err := r.parse(name)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		for _, declaration := range file.Decls {
			if general, ok := declaration.(*ast.GenDecl); ok {
				if err := r.general(file, general); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, file := range files {
		r.functions(file, "")
	}
	r.unfold()
	return r.symbols, nil
}

// unfold lets generated code of streams look as it did before there were generic ones: a name for each, with methods.
func (r *reader) unfold() {
	for name, generic := range r.symbols {
		if !strings.HasPrefix(generic, "type grpc.") || !strings.Contains(generic, "[") {
			continue
		}
		r.symbols[name] = "type"
		generic = strings.TrimPrefix(generic, "type ")
		kind, arguments, _ := strings.Cut(strings.TrimSuffix(generic, "]"), "[")
		isClient := strings.HasSuffix(kind, "Client")
		request, reply, isBoth := strings.Cut(arguments, ", ")
		if !isBoth {
			reply = request
		}
		if sends := isBoth == isClient || isBoth; sends {
			r.symbols[name+".Send"] = "func(*" + pick(isClient, request, reply) + ") (error)"
		}
		if receives := isBoth || isClient; receives {
			r.symbols[name+".Recv"] = "func() (*" + pick(isClient, reply, request) + ", error)"
		}
		for symbol, is := range r.symbols {
			r.symbols[symbol] = strings.ReplaceAll(is, generic, name)
		}
	}
}

func pick(first bool, one, other string) string {
	if first {
		return one
	}
	return other
}

// parse reads the files that a build for this machine has.
func (r *reader) parse(name string) ([]*ast.File, error) {
	folder := filepath.Join(r.root, name)
	found, err := build.Default.ImportDir(folder, 0)
	if err != nil {
		if _, none := err.(*build.NoGoError); none {
			return nil, nil
		}
		return nil, err
	}
	var files []*ast.File
	for _, one := range found.GoFiles {
		file, err := parser.ParseFile(r.set, filepath.Join(folder, one), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func (r *reader) general(file *ast.File, general *ast.GenDecl) error {
	for _, spec := range general.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() {
					// The type of a value is seldom written there.
					r.symbols[name.Name] = ""
				}
			}
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				if err := r.typeOf(file, spec.Name.Name, spec); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// typeOf has a type, its fields and the methods of an interface. What stands in another package of the module is looked up there.
func (r *reader) typeOf(file *ast.File, name string, spec *ast.TypeSpec) error {
	r.symbols[name] = "type"
	r.types[name] = true
	switch of := spec.Type.(type) {
	case *ast.StructType:
		for _, field := range of.Fields.List {
			for _, one := range field.Names {
				if one.IsExported() {
					r.symbols[name+"."+one.Name] = r.text(field.Type)
				}
			}
		}
	case *ast.InterfaceType:
		for _, method := range of.Methods.List {
			for _, one := range method.Names {
				if one.IsExported() {
					r.symbols[name+"."+one.Name] = r.text(method.Type)
				}
			}
		}
	case *ast.SelectorExpr:
		return r.elsewhere(file, name, of)
	default:
		r.symbols[name] = "type " + r.text(spec.Type)
	}
	return nil
}

// elsewhere reads a type of another package of the module.
func (r *reader) elsewhere(file *ast.File, name string, of *ast.SelectorExpr) error {
	short := of.X.(*ast.Ident).Name
	for _, imported := range file.Imports {
		path := strings.Trim(imported.Path.Value, `"`)
		folder, inside := strings.CutPrefix(path, module+"/")
		is := filepath.Base(path) == short
		if imported.Name != nil {
			is = imported.Name.Name == short
		}
		if !inside || !is {
			continue
		}
		files, err := r.parse(folder)
		if err != nil {
			return err
		}
		for _, other := range files {
			for _, declaration := range other.Decls {
				general, ok := declaration.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range general.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.Name == of.Sel.Name {
						if err := r.typeOf(other, name, spec); err != nil {
							return err
						}
					}
				}
			}
		}
		for _, other := range files {
			r.functions(other, of.Sel.Name+"="+name)
		}
	}
	return nil
}

// functions has functions and methods; of another package (TYPE=NAME) only the methods of that type.
func (r *reader) functions(file *ast.File, only string) {
	there, here, isElsewhere := strings.Cut(only, "=")
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || !function.Name.IsExported() {
			continue
		}
		name := function.Name.Name
		if function.Recv != nil {
			receiver := strings.TrimPrefix(r.text(function.Recv.List[0].Type), "*")
			receiver, _, _ = strings.Cut(receiver, "[")
			if isElsewhere && receiver == there {
				receiver = here
			} else if isElsewhere || !r.types[receiver] {
				continue
			}
			name = receiver + "." + name
		} else if isElsewhere {
			continue
		}
		r.symbols[name] = r.text(function.Type)
	}
}

var (
	spaces = regexp.MustCompile(`\s+`)
	// Packages that have the same types by two names.
	sameName = strings.NewReplacer(
		"interface{}", "any", "creds.", "credentials.", "healthpb.", "", "healthgrpc.", "", "protoadapt.MessageV1", "protoiface.MessageV1",
		"protodesc.Resolver", "DescriptorResolver", "proto.Message", "protoiface.MessageV1", "istatus.", "", "status.", "",
		"iter.Seq2[Address, T]", "func(func(Address, T) (bool)) ()", "iter.Seq2[Endpoint, T]", "func(func(Endpoint, T) (bool)) ()",
		"v1alphagrpc.", "v1alphareflectiongrpc.", "rpb.", "v1alphareflectiongrpc.", "methodHandler", "MethodHandler",
	)
)

// text is a type without the names of parameters.
func (r *reader) text(node ast.Expr) string {
	if function, ok := node.(*ast.FuncType); ok {
		return "func(" + r.list(function.Params) + ") (" + r.list(function.Results) + ")"
	}
	var text bytes.Buffer
	printer.Fprint(&text, r.set, node)
	return sameName.Replace(spaces.ReplaceAllString(text.String(), " "))
}

func (r *reader) list(fields *ast.FieldList) string {
	if fields == nil {
		return ""
	}
	var all []string
	for _, field := range fields.List {
		for i, end := 0, max(1, len(field.Names)); i < end; i++ {
			all = append(all, r.text(field.Type))
		}
	}
	return strings.Join(all, ", ")
}
