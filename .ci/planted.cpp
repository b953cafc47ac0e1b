// Errors on purpose. Each sanitizer must report its own before a run without a report means anything.
#include <climits>
#include <thread>

extern "C" {

int heap_overflow(int n) {
    int* data = new int[n];
    data[n] = 1;
    const int last = data[n];
    delete[] data;
    return last;
}

int signed_overflow(int n) { return n + INT_MAX; }

int data_race(int n) {
    int count = 0;
    auto add = [&] { for (int i = 0; i < n; ++i) ++count; };
    std::thread other(add);
    add();
    other.join();
    return count;
}
}
