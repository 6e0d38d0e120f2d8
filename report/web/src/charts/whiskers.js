// Whiskers of intervals: one custom series for bars that lie or stand.

// data: [[position, low, high]]; horizontal: low and high are on the x axis
export function whiskers(data, colour, horizontal) {
  return {
    type: "custom",
    silent: true,
    z: 5,
    data,
    encode: horizontal ? { x: [1, 2], y: 0 } : { x: 0, y: [1, 2] },
    renderItem: (_, api) => {
      const at = (value) =>
        horizontal ? api.coord([value, api.value(0)]) : api.coord([api.value(0), value]);
      const [a, b] = [at(api.value(1)), at(api.value(2))];
      const [dx, dy] = horizontal ? [0, 5] : [5, 0];
      const line = (x1, y1, x2, y2) => ({
        type: "line",
        shape: { x1, y1, x2, y2 },
        style: { stroke: colour, lineWidth: 1.5 },
      });
      return {
        type: "group",
        children: [
          line(...a, ...b),
          line(a[0] - dx, a[1] - dy, a[0] + dx, a[1] + dy),
          line(b[0] - dx, b[1] - dy, b[0] + dx, b[1] + dy),
        ],
      };
    },
  };
}
