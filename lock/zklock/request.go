package zklock

// The kinds of requests.
const (
	opCreate  int32 = 1
	opDelete  int32 = 2
	opExists  int32 = 3
	opGetData int32 = 4
	opSetData int32 = 5
	opSync    int32 = 9
	opPing    int32 = 11
	opCheck   int32 = 13
	opMulti   int32 = 14
	opOwn     int32 = 103 // the ephemeral nodes of the session; since version 3.6
	opClose   int32 = -11
)

// Numbers of requests with a meaning.
const (
	xidEvent int32 = -1
	xidPing  int32 = -2
)

const anyVersion int32 = -1

// A stat is what ZooKeeper knows of a node, as far as a lock needs it.
type stat struct {
	created int64 // the zxid of its creation
	owner   int64 // the session of an ephemeral node, or 0
}

func (d *decoder) stat() (s stat) {
	s.created = d.int64()
	d.take(8 + 8 + 8 + 4 + 4 + 4) // modified, times, versions
	s.owner = d.int64()
	d.take(4 + 4 + 8) // length, children, last change of them
	return s
}

// A part is one step of a multi, which does all steps or none.
type part struct {
	kind int32
	path string
	data string
}

func check(path string) part              { return part{kind: opCheck, path: path} }
func remove(path string) part             { return part{kind: opDelete, path: path} }
func createEphemeral(path, d string) part { return part{kind: opCreate, path: path, data: d} }

// statOf writes nothing into an empty node. The result is the node's stat, which a create in a
// multi does not return.
func statOf(path string) part { return part{kind: opSetData, path: path} }

// multi is the request for all parts.
func multi(parts ...part) []byte {
	var e encoder
	for _, p := range parts {
		e.multiHeader(p.kind, false)
		e.text(p.path)
		switch p.kind {
		case opCreate:
			e.created(p.data, true)
		case opSetData:
			e.text(p.data)
			e.int32(anyVersion)
		default:
			e.int32(anyVersion)
		}
	}
	e.multiHeader(-1, true)
	return e.b
}

func (e *encoder) multiHeader(kind int32, done bool) {
	e.int32(kind)
	e.bool(done)
	e.int32(-1)
}

// created is the rest of a create after the path: everybody may do anything with the node.
func (e *encoder) created(data string, ephemeral bool) {
	const everything = 31
	e.text(data)
	e.int32(1)
	e.int32(everything)
	e.text("world")
	e.text("anyone")
	if ephemeral {
		e.int32(1)
	} else {
		e.int32(0)
	}
}

// A result is what became of a part.
type result struct {
	err code
	stat
}

// multiResults reads the answer to a multi.
func multiResults(answer []byte) ([]result, error) {
	d := decoder{b: answer}
	var results []result
	for d.err == nil {
		kind, done, _ := d.int32(), d.bool(), d.int32()
		if done {
			break
		}
		var r result
		switch kind {
		case -1:
			r.err = code(d.int32())
		case opCreate:
			d.text()
		case opSetData:
			r.stat = d.stat()
		}
		results = append(results, r)
	}
	return results, d.err
}

// failed returns the first part that was rejected for a reason of its own: all others were
// rejected because of that. It returns -1 if all were executed.
func failed(results []result) int {
	some := -1
	for i, r := range results {
		switch r.err {
		case 0:
		case errInconsistent:
			some = i
		default:
			return i
		}
	}
	return some
}

// read is the request for a node's data or for whether it exists.
func read(path string, watch bool) []byte {
	var e encoder
	e.text(path)
	e.bool(watch)
	return e.b
}

func createPersistent(path string) []byte {
	var e encoder
	e.text(path)
	e.created("", false)
	return e.b
}

// own is the request for the ephemeral nodes of the session whose paths begin with prefix.
func own(prefix string) []byte {
	var e encoder
	e.text(prefix)
	return e.b
}

// paths reads the answer to own.
func paths(answer []byte) ([]string, error) {
	d := decoder{b: answer}
	var all []string
	for n := d.int32(); n > 0 && d.err == nil; n-- {
		all = append(all, d.text())
	}
	return all, d.err
}

func syncOf(path string) []byte {
	var e encoder
	e.text(path)
	return e.b
}
