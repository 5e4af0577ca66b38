// What wbn/kernels.py calls. Tensors are addresses, 0 for None, and are what it says they are; the
// first argument of a function is the size of their values in bytes, of which 2 means bfloat16.

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "batch.h"

// ---- Weights and running statistics

// Shares w / Z, and of the weights the smallest, Z and 1 - sum(w^2) / Z^2, which as a sum over
// pairs is no difference. Over a power of two, no square of a weight leaves the range of numbers.
template <typename W, typename A>
static PyObject *shares_of(const W *w, A *shares, Size count, Size copies) {
    double smallest = w[0], largest = 0, total = 0, pairs = 0;
    for (Size i = 0; i < count; i++) {
        if (w[i] < smallest || std::isnan(w[i])) smallest = w[i];
        largest = std::max<double>(largest, w[i]);
    }
    int exponent = 0;
    if (largest > 0 && std::isfinite(largest)) std::frexp(largest, &exponent);
    exponent = std::min(1000, std::max(-1000, exponent));
    const double scale = std::ldexp(1.0, -exponent);
    for (Size from = 0; from < count; from += 256) {
        double own_total = 0, own_pairs = 0;
        for (Size i = from; i < std::min<Size>(from + 256, count); i++) {
            own_pairs += w[i] * scale * own_total;
            own_total += w[i] * scale;
        }
        pairs += own_pairs + own_total * total;
        total += own_total;
    }
    const double all = total * static_cast<double>(copies), inverse = 1 / all;
    for (Size i = 0; i < count; i++) shares[i] = static_cast<A>(w[i] * scale * inverse);
    const double spread = 1 - 1 / static_cast<double>(copies) + 2 * pairs * inverse / total;
    return Py_BuildValue("ddd", smallest, std::ldexp(all, exponent), spread);
}

template <typename A>
static int storable(A mean, A var) {  // finite, and not negative; without branches, for vectors
    constexpr A largest = std::numeric_limits<A>::max();
    return (std::abs(mean) <= largest) & (var >= 0) & (var <= largest);
}

// As torch.lerp.
template <typename A>
static A between(A from, A to, A momentum) {
    if (momentum == 1) return to;
    return momentum < A(0.5) ? from + momentum * (to - from) : to - (to - from) * (1 - momentum);
}

template <typename A>
struct Running {
    A *mean, *var;
    Size channels;

    bool update(const A *batch_mean, const A *batch_var, A momentum) const {
        int all = 1;
        for (Size c = 0; c < channels; c++)
            all &= storable(between(mean[c], batch_mean[c], momentum),
                            between(var[c], batch_var[c], momentum));
        for (Size c = 0; all && c < channels; c++) {
            mean[c] = between(mean[c], batch_mean[c], momentum);
            var[c] = between(var[c], batch_var[c], momentum);
        }
        return all != 0;
    }

    PyObject *copy() const {
        const Size size = channels * sizeof(A);
        PyObject *copied = PyBytes_FromStringAndSize(nullptr, 2 * size);
        if (copied == nullptr) return nullptr;
        std::memcpy(PyBytes_AsString(copied), mean, size);
        std::memcpy(PyBytes_AsString(copied) + size, var, size);
        return copied;
    }

    bool keep_or_restore(const char *copied) const {
        int all = 1;
        for (Size c = 0; c < channels; c++) all &= storable(mean[c], var[c]);
        if (all) return true;
        std::memcpy(mean, copied, channels * sizeof(A));
        std::memcpy(var, copied + channels * sizeof(A), channels * sizeof(A));
        return false;
    }
};

// ---- For Python

class Arguments {
    PyObject *const *next_;

  public:
    explicit Arguments(PyObject *const *values) : next_(values) {}
    Size size() { return PyLong_AsSsize_t(*next_++); }
    double number() { return PyFloat_AsDouble(*next_++); }
    template <typename T>
    T *address() {
        return static_cast<T *>(PyLong_AsVoidPtr(*next_++));
    }
};

static bool are(Size given, Size wanted) {
    if (given != wanted) PyErr_Format(PyExc_TypeError, "%zd arguments, not %zd", given, wanted);
    return given == wanted;
}

template <typename T>
static PyObject *worked_on(Arguments rest) {
    using A = Precise<T>;
    Batch<T> batch = {};
    batch.x = rest.address<T>();
    batch.grad = rest.address<T>();
    batch.out = rest.address<T>();
    batch.share = rest.address<A>();
    batch.weight = rest.address<A>();
    batch.bias = rest.address<A>();
    batch.mean = rest.address<A>();
    batch.rest = rest.address<A>();
    batch.var = rest.address<A>();
    batch.stored = rest.address<A>();
    batch.grad_weight = rest.address<A>();
    batch.grad_bias = rest.address<A>();
    batch.samples = rest.size();
    batch.channels = rest.size();
    batch.positions = rest.size();
    batch.repeat = rest.size();
    batch.each = rest.size() != 0;
    batch.threads = static_cast<int>(rest.size());
    batch.eps = rest.number();
    batch.corrected = rest.number();
    batch.to_store = rest.number();
    if (PyErr_Occurred()) return nullptr;
    PyThreadState *state = PyEval_SaveThread();
    bool enough_memory = true;
    try {
        if (batch.grad == nullptr) normalize(batch);
        else differentiate(batch);
    } catch (const std::bad_alloc&) {
        enough_memory = false;
    }
    PyEval_RestoreThread(state);
    if (!enough_memory) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

// A pass over a batch, backward if it has a gradient.
static PyObject *batch_norm(PyObject *, PyObject *const *args, Size given) {
    if (!are(given, 22)) return nullptr;
    const Arguments rest(args + 1);
    switch (PyLong_AsLong(args[0])) {
    case 8: return worked_on<double>(rest);
    case 4: return worked_on<float>(rest);
    default: return worked_on<BFloat16>(rest);
    }
}

// Of weights to shares; the second argument is the size of a share.
template <typename W, typename A>
static PyObject *shares_from(Arguments rest) {
    const W *w = rest.address<W>();
    A *shares = rest.address<A>();
    const Size count = rest.size(), copies = rest.size();
    return PyErr_Occurred() ? nullptr : shares_of(w, shares, count, copies);
}

static PyObject *shares(PyObject *, PyObject *const *args, Size given) {
    if (!are(given, 6)) return nullptr;
    const bool wide = PyLong_AsLong(args[0]) == 8, to_wide = PyLong_AsLong(args[1]) == 8;
    const Arguments rest(args + 2);
    if (wide) return to_wide ? shares_from<double, double>(rest) : shares_from<double, float>(rest);
    return to_wide ? shares_from<float, double>(rest) : shares_from<float, float>(rest);
}

// Running statistics: updated by those of a batch; copied; kept if they are fine, or restored.
template <typename A>
static Running<A> running(Arguments& rest) {
    A *mean = rest.address<A>(), *var = rest.address<A>();
    return {mean, var, rest.size()};
}

template <typename A>
static PyObject *updated(Arguments rest) {
    const Running<A> statistics = running<A>(rest);
    const A *mean = rest.address<A>(), *var = rest.address<A>();
    const A momentum = static_cast<A>(rest.number());
    if (PyErr_Occurred()) return nullptr;
    return PyBool_FromLong(statistics.update(mean, var, momentum));
}

static PyObject *update(PyObject *, PyObject *const *args, Size given) {
    if (!are(given, 7)) return nullptr;
    const Arguments rest(args + 1);
    return PyLong_AsLong(args[0]) == 8 ? updated<double>(rest) : updated<float>(rest);
}

static PyObject *copy(PyObject *, PyObject *const *args, Size given) {
    if (!are(given, 4)) return nullptr;
    Arguments rest(args + 1);
    if (PyLong_AsLong(args[0]) == 8) return running<double>(rest).copy();
    return running<float>(rest).copy();
}

static PyObject *keep_or_restore(PyObject *, PyObject *const *args, Size given) {
    if (!are(given, 5)) return nullptr;
    Arguments rest(args + 1);
    const char *copied = PyBytes_AsString(args[4]);
    if (copied == nullptr) return nullptr;
    if (PyLong_AsLong(args[0]) == 8)
        return PyBool_FromLong(running<double>(rest).keep_or_restore(copied));
    return PyBool_FromLong(running<float>(rest).keep_or_restore(copied));
}

#define METHOD(function) \
    {#function, (PyCFunction)(void (*)(void))function, METH_FASTCALL, nullptr}
static PyMethodDef methods[] = {
    METHOD(batch_norm), METHOD(shares), METHOD(update), METHOD(copy), METHOD(keep_or_restore),
    {nullptr, nullptr, 0, nullptr}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
